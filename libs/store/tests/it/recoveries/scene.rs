//! A subscription whose endpoint fails and answers again, and those who work for it.

use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::dead_letter_job::JobStatus;
use domain::lifecycle::transition;
use domain::notification::{ClientErrors, DeliveryOutcome, NotificationId, NotificationState};
use sqlx::PgPool;
use store::webhook::DeliveryCompletion;
use store::{DeadLetterJob, RecoveryTerms, Store};
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{POLICY, answered, completion, row, set, terms, timed_out};

/// A subscription with an endpoint that is down or up, and the clock of those who work for it.
pub(super) struct Scene {
    pub(super) store: Store,
    pub(super) pool: PgPool,
    pub(super) id: Uuid,
    pub(super) now: DateTime<Utc>,
    /// How many attempts were made.
    pub(super) attempts: AtomicI64,
}

impl Scene {
    pub(super) async fn of(pool: &PgPool, row: SubscriptionRow) -> Self {
        Self {
            store: Store::from_pool(pool.clone()),
            pool: pool.clone(),
            id: row.make(pool).await,
            now: SystemClock.now(),
            attempts: AtomicI64::new(0),
        }
    }

    pub(super) async fn new(pool: &PgPool) -> Self {
        Self::of(pool, SubscriptionRow::active()).await
    }

    /// An attempt, the last one that is allowed.
    pub(super) async fn attempt(&self, outcome: DeliveryOutcome) -> MadeNotification {
        // Identifiers are in the order of their milliseconds.
        let at = self.now + TimeDelta::milliseconds(self.attempts.fetch_add(1, Ordering::Relaxed));
        let sending = NotificationRow::in_state(NotificationState::Sending, self.id).attempts(4);
        let made = sending.created_at(at).make(&self.pool).await;
        let batch = [completion(&made, 4, outcome)];
        let completed = self.store.complete_deliveries(&batch, SystemClock.now()).await;
        assert_eq!(completed.unwrap().len(), 1);
        made
    }

    /// So many notifications are given up; the endpoint answers none of them.
    pub(super) async fn outage(&self, count: usize) -> Vec<NotificationId> {
        let mut given_up = Vec::new();
        for _ in 0..count {
            given_up.push(self.attempt(timed_out()).await.id);
        }
        given_up
    }

    /// The event of one that the outage gave up says of it what its own story says.
    pub(super) async fn event_knows_the_dead_letter_of(&self, id: NotificationId) {
        let own = self
            .store
            .notification_timeline(id.uuid())
            .await
            .unwrap()
            .unwrap();
        let event = self.store.find_event(own.event).await.unwrap().unwrap();
        let [told] = &*event.notifications else {
            panic!("one notification was made of it: {event:?}")
        };
        let letter = own.dead_letters[0].id;
        assert_eq!(
            (told.dead_letter, told.outage, own.outage),
            (Some(letter), true, true)
        );
    }

    /// The endpoint answers a new notification, and some time passes.
    pub(super) async fn recover(&self) {
        self.attempt(answered(200)).await;
        self.settle().await;
    }

    pub(super) async fn settle(&self) {
        set(
            &self.pool,
            "UPDATE subscriptions SET recover_at = now(), last_failure_at = now() - interval '1 hour' WHERE id = $1",
            self.id,
        )
        .await;
    }

    pub(super) async fn begin(&self, terms: &RecoveryTerms) -> u64 {
        self.store.begin_recoveries(terms, self.now).await.unwrap()
    }

    /// The recovery that was made last.
    pub(super) async fn job(&self) -> DeadLetterJob {
        let jobs = self.store.list_dead_letter_jobs(None, None, 1).await.unwrap();
        jobs.into_iter().next().expect("there is a recovery")
    }

    /// A second passes, and the recovery gets on.
    pub(super) async fn step(&mut self) -> u64 {
        self.now += TimeDelta::seconds(1);
        let id = self.job().await.id;
        let step = self.store.advance_dead_letter_job(id, self.now);
        step.await.unwrap().replayed
    }

    /// Makes an attempt at everything that is due, in its turn; returns it.
    pub(super) async fn deliver(&self, outcome: &DeliveryOutcome) -> Vec<NotificationId> {
        let due: Vec<Uuid> = sqlx::query_scalar(
            "SELECT id FROM notifications WHERE status = 'RETRY' AND next_attempt_at <= $1 ORDER BY next_attempt_at, id",
        )
        .bind(self.now)
        .fetch_all(&self.pool)
        .await
        .unwrap();
        let due: Vec<NotificationId> = due.into_iter().map(NotificationId::from).collect();
        let claims = self
            .store
            .claim_notifications(&due, &terms(self.now))
            .await
            .unwrap();
        let mut batch = Vec::new();
        for claimed in &claims.claimed {
            let classification = outcome.clone().classification(ClientErrors::Usual);
            let next = transition(
                NotificationState::Sending,
                classification.event,
                claimed.attempts,
                &POLICY.rules(),
            )
            .unwrap();
            batch.push(DeliveryCompletion {
                id: claimed.id,
                lease_token: claimed.lease_token,
                status: next.status(),
                next_attempt_at: (next == NotificationState::Retry).then_some(self.now),
                started_at: self.now,
                millis: 5,
                classification,
            });
        }
        self.store.complete_deliveries(&batch, self.now).await.unwrap();
        due
    }

    /// Takes the recovery to its end while the endpoint takes everything; returns what was sent, in that order.
    pub(super) async fn finish(&mut self) -> Vec<NotificationId> {
        let mut sent = Vec::new();
        while self.job().await.status == JobStatus::Running {
            self.step().await;
            sent.extend(self.deliver(&answered(200)).await);
        }
        self.store.settle_recoveries(self.now).await.unwrap();
        sent
    }

    pub(super) async fn outage_since(&self) -> Option<DateTime<Utc>> {
        sqlx::query_scalar("SELECT outage_since FROM subscriptions WHERE id = $1")
            .bind(self.id)
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    pub(super) async fn statuses(&self, ids: &[NotificationId]) -> Vec<String> {
        let mut statuses = Vec::new();
        for id in ids {
            statuses.push(row(&self.pool, *id).await.status);
        }
        statuses
    }
}

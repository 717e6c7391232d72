//! What the tests set up and look at: terms, events, completions, and the whole contents of the tables.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::lifecycle::{Attempts, transition};
use domain::notification::{
    ClientErrors, DeliveryOutcome, FailureKind, NotificationId, NotificationState, RetryPolicy,
};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgPool};
use store::Store;
use store::webhook::{ClaimTerms, Claims, DeliveryCompletion, FannedOut, InsertedEvent, LineTerms, NewEvent};
use testkit::notification_factory::{MadeNotification, NotificationRow};
use uuid::Uuid;

use crate::scene::LONG;

pub(crate) const POLICY: RetryPolicy = RetryPolicy {
    max_retries: 3,
    initial_delay: Duration::from_secs(30),
    max_delay: Duration::from_secs(300),
    max_retry_after: Duration::from_secs(3_600),
};

/// Generous terms: nothing stands in the way of a claim at `at`.
pub(crate) fn terms(at: DateTime<Utc>) -> ClaimTerms {
    ClaimTerms {
        at,
        lease: LONG,
        daily_quota: 1_000_000,
        requests_per_second: None,
        zone: chrono_tz::UTC,
        horizon: Duration::from_millis(1_500),
    }
}

/// Midday, so that a test does not run into the next day.
pub(crate) fn noon() -> DateTime<Utc> {
    SystemClock
        .now()
        .date_naive()
        .and_hms_opt(12, 0, 0)
        .unwrap()
        .and_utc()
}

/// An event of the reseller `acme`.
pub(crate) fn event(event_type: &str) -> NewEvent {
    let (id, now) = (Uuid::now_v7(), SystemClock.now());
    NewEvent {
        id,
        event_id: id.to_string(),
        reseller_id: "acme".to_owned(),
        event_type: event_type.to_owned(),
        body: format!(r#"{{"id":"{id}","type":"{event_type}","data":{{}}}}"#),
        occurred_at: now,
        created_at: now,
        traceparent: None,
        keys: Vec::new(),
    }
}

/// How lines move in these tests.
pub(crate) fn line_terms() -> LineTerms {
    LineTerms::default()
}

/// Releases what may leave its line at `at`, as if nothing had been looked at for a while.
pub(crate) async fn release(store: &Store, pool: &PgPool, at: DateTime<Utc>) -> Vec<NotificationId> {
    store.find_lines(at, &line_terms()).await.unwrap();
    sqlx::query("UPDATE subscription_budgets SET release_at = now() WHERE release_at IS NOT NULL")
        .execute(pool)
        .await
        .unwrap();
    let released = store
        .release_lines(at, &line_terms(), 1_000, 1_000, LONG)
        .await
        .unwrap();
    released.promoted.into_iter().map(|one| one.id.into()).collect()
}

/// Lets the requests per second go by that have been used: so much of the database's time passes for them.
pub(crate) async fn pass(pool: &PgPool, seconds: f64) {
    sqlx::query("UPDATE subscription_paces SET next_slot_at = next_slot_at - $1 * interval '1 second'")
        .bind(seconds)
        .execute(pool)
        .await
        .unwrap();
}

/// Promotes what waits in either lane; says which of it was tried before.
pub(crate) async fn promote_due(
    store: &Store,
    pool: &PgPool,
    at: DateTime<Utc>,
) -> Vec<(NotificationId, bool)> {
    let released = release(store, pool, at).await;
    let retries = store
        .promote_retries(at, None, &[], 1_000, 1_000, LONG)
        .await
        .unwrap()
        .notifications;
    let released = released.into_iter().map(|id| (id, false));
    released
        .chain(retries.into_iter().map(|one| (one.id.into(), true)))
        .collect()
}

/// As [`promote_due`], without that.
pub(crate) async fn promote_due_ids(store: &Store, pool: &PgPool, at: DateTime<Utc>) -> Vec<NotificationId> {
    promote_due(store, pool, at)
        .await
        .into_iter()
        .map(|(id, _)| id)
        .collect()
}

/// What an event became that must be new.
pub(crate) fn new(inserted: &InsertedEvent) -> &[FannedOut] {
    match inserted {
        InsertedEvent::New(fanned) => fanned,
        other => panic!("{other:?}"),
    }
}

/// `count` notifications of a subscription, the oldest first.
pub(crate) async fn notifications(
    pool: &PgPool,
    state: NotificationState,
    subscription: Uuid,
    count: i64,
) -> Vec<MadeNotification> {
    let now = SystemClock.now();
    let mut made = Vec::new();
    for n in (0..count).rev() {
        let row = NotificationRow::in_state(state, subscription).created_at(now - TimeDelta::milliseconds(n));
        made.push(row.make(pool).await);
    }
    made
}

/// As [`notifications`], but made by one statement: without events that could be sent.
pub(crate) async fn many_pending(pool: &PgPool, subscription: Uuid, count: i64) {
    sqlx::query(
        "INSERT INTO notifications (id, event, subscription_id, reseller_id, event_type, status, payload_bytes,
                                    created_at, updated_at)
         SELECT (left(first_id_of_month(date_trunc('month', now())::date)::text, 9)
                 || right(gen_random_uuid()::text, 27))::uuid,
                gen_random_uuid(), $1, 'acme', 'domain.created', 'PENDING', 1, now(), now() - interval '1 hour'
         FROM generate_series(1, $2)",
    )
    .bind(subscription)
    .bind(count)
    .execute(pool)
    .await
    .unwrap();
}

pub(crate) fn ids(made: &[MadeNotification]) -> Vec<NotificationId> {
    made.iter().map(|one| one.id).collect()
}

/// Claims by one id list; the claimed ids in the order of age.
pub(crate) async fn claim(store: &Store, ids: &[NotificationId], terms: &ClaimTerms) -> Claims {
    store.claim_notifications(ids, terms).await.unwrap()
}

pub(crate) fn claimed_ids(claims: &Claims) -> Vec<NotificationId> {
    let mut ids: Vec<_> = claims.claimed.iter().map(|one| one.id).collect();
    ids.sort_unstable();
    ids
}

pub(crate) fn answered(status: u16) -> DeliveryOutcome {
    DeliveryOutcome::Answered {
        status,
        retry_after: None,
        body: format!("answer {status}"),
    }
}

pub(crate) fn timed_out() -> DeliveryOutcome {
    DeliveryOutcome::Failed {
        kind: FailureKind::Timeout,
        message: "no answer within 10 s".to_owned(),
    }
}

/// The completion of a notification that is being sent for the `attempts`th time, as an engine decides it.
pub(crate) fn completion(
    made: &MadeNotification,
    attempts: u32,
    outcome: DeliveryOutcome,
) -> DeliveryCompletion {
    let attempts = Attempts {
        total: attempts,
        before_resend: 0,
    };
    let classification = outcome.classification(ClientErrors::Usual);
    let next = transition(
        NotificationState::Sending,
        classification.event,
        attempts,
        &POLICY.rules(),
    )
    .unwrap();
    let now = SystemClock.now();
    DeliveryCompletion {
        id: made.id,
        lease_token: made.lease_token,
        status: next.status(),
        next_attempt_at: (next == NotificationState::Retry).then(|| now + TimeDelta::minutes(1)),
        started_at: now,
        millis: 17,
        classification,
    }
}

/// A notification as it is stored.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub(crate) struct Row {
    pub(crate) status: String,
    pub(crate) claimed: bool,
    pub(crate) reason: Option<String>,
    pub(crate) attempts: i32,
    pub(crate) resent_after: i32,
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    pub(crate) charged_on: Option<NaiveDate>,
    pub(crate) slot_at: Option<DateTime<Utc>>,
    pub(crate) finished_at: Option<DateTime<Utc>>,
}

impl Row {
    pub(crate) fn state(&self) -> NotificationState {
        NotificationState::of(
            self.status.parse().unwrap(),
            self.claimed,
            self.reason.as_deref() == Some("CANCELLED"),
        )
    }
}

pub(crate) async fn row(pool: &PgPool, id: NotificationId) -> Row {
    sqlx::query_as(
        "SELECT status, lease_token IS NOT NULL AS claimed, reason, attempts, resent_after, next_attempt_at, charged_on,
                slot_at, finished_at
         FROM notifications WHERE id = $1",
    )
    .bind(id.uuid())
    .fetch_one(pool)
    .await
    .unwrap()
}

/// A subscription as far as deliveries change it.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub(crate) struct Subscription {
    pub(crate) state: String,
    pub(crate) state_reason: String,
    pub(crate) state_changed_at: DateTime<Utc>,
    pub(crate) failing_since: Option<DateTime<Utc>>,
    pub(crate) last_failure_at: Option<DateTime<Utc>>,
}

pub(crate) async fn subscription(pool: &PgPool, id: Uuid) -> Subscription {
    sqlx::query_as(
        "SELECT state, state_reason, state_changed_at, failing_since, last_failure_at
         FROM subscriptions WHERE id = $1",
    )
    .bind(id)
    .fetch_one(pool)
    .await
    .unwrap()
}

/// An e-mail that waits.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub(crate) struct Email {
    pub(crate) kind: String,
    pub(crate) subscription_id: Uuid,
    pub(crate) recipient: String,
    pub(crate) data: Value,
    pub(crate) occurrences: i64,
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    pub(crate) created_at: DateTime<Utc>,
}

pub(crate) async fn emails(pool: &PgPool) -> Vec<Email> {
    sqlx::query_as(
        "SELECT kind, subscription_id, recipient, data, occurrences, next_attempt_at, created_at
         FROM emails ORDER BY created_at, kind",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

pub(crate) const TABLES: [&str; 10] = [
    "delivery_attempts",
    "notifications",
    "events",
    "dead_letters",
    "emails",
    "subscription_budgets",
    "subscription_paces",
    "subscription_sidelines",
    "signing_secrets",
    "subscriptions",
];

/// Every row of the lane, in full.
pub(crate) async fn everything(pool: &PgPool) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for table in TABLES {
        let rows = format!("SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t::text), '[]') FROM {table} t");
        let rows: Value = sqlx::query_scalar(AssertSqlSafe(rows))
            .fetch_one(pool)
            .await
            .unwrap();
        all.push((table.to_owned(), rows));
    }
    all
}

pub(crate) async fn clear(pool: &PgPool) {
    for table in TABLES {
        sqlx::query(AssertSqlSafe(format!("DELETE FROM {table}")))
            .execute(pool)
            .await
            .unwrap();
    }
}

/// Runs a statement that sets the scene.
pub(crate) async fn set(pool: &PgPool, sql: &'static str, id: Uuid) {
    let changed = sqlx::query(sql).bind(id).execute(pool).await.unwrap();
    assert_eq!(changed.rows_affected(), 1, "{sql}");
}

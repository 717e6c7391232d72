//! A made-up past: what it holds is what any reader finds, and it goes into no other database than one of a demonstration.

use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::notification::{ClientErrors, DeliveryOutcome, NotificationStatus};
use domain::reason::StateReason;
use domain::subscription::SubscriptionState;
use sqlx::PgPool;
use store::Store;
use store::demo::{Past, PastAttempt, PastDay, PastNotification, PastState, PastSubscription, PastWritten};
use store::webhook::NewEvent;
use testkit::subscription_factory::SubscriptionRow;
use uuid::{NoContext, Timestamp, Uuid};

const RESELLER: &str = "demo";

fn attempt(at: DateTime<Utc>, status: u16) -> PastAttempt {
    let outcome = DeliveryOutcome::Answered {
        status,
        retry_after: None,
        body: "answer".to_owned(),
    };
    PastAttempt {
        started_at: at,
        took: Duration::from_millis(40),
        url: "https://shop.example/hooks".to_owned(),
        classification: outcome.classification(ClientErrors::Usual),
    }
}

fn notification(
    subscription: Uuid,
    at: DateTime<Utc>,
    status: NotificationStatus,
    answers: &[u16],
) -> PastNotification {
    let seconds = u64::try_from(at.timestamp()).unwrap();
    let id = Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, 0));
    let attempts: Vec<_> = answers.iter().map(|status| attempt(at, *status)).collect();
    let fingerprint = attempts
        .last()
        .and_then(|last| last.classification.fingerprint.clone());
    let waits = status == NotificationStatus::Scheduled;
    PastNotification {
        event: NewEvent {
            id,
            event_id: format!("past-{id}"),
            reseller_id: RESELLER.to_owned(),
            event_type: "domain.created".to_owned(),
            body: "{}".to_owned(),
            occurred_at: at,
            created_at: at,
            traceparent: None,
            keys: Vec::new(),
        },
        subscription,
        status,
        reason: if waits {
            Some("QUOTA".to_owned())
        } else {
            fingerprint
        },
        next_attempt_at: waits.then_some(at),
        charged_on: (!waits).then(|| at.date_naive()),
        attempts,
    }
}

fn past(subscription: Uuid, now: DateTime<Utc>) -> Past {
    let ago = |hours| now - TimeDelta::hours(hours);
    let state = |at, state, reason| PastState { at, state, reason };
    Past {
        subscriptions: vec![PastSubscription {
            id: subscription,
            states: vec![
                state(
                    ago(900),
                    SubscriptionState::PendingVerification,
                    StateReason::Created,
                ),
                state(ago(899), SubscriptionState::Active, StateReason::Verified),
                state(ago(2), SubscriptionState::Degraded, StateReason::Failing),
            ],
            failing_since: Some(ago(50)),
            daily_quota: Some(7),
            days: vec![
                PastDay {
                    day: ago(24).date_naive(),
                    used: 5,
                    quota: 7,
                },
                PastDay {
                    day: now.date_naive(),
                    used: 7,
                    quota: 7,
                },
            ],
        }],
        notifications: vec![
            notification(subscription, ago(30), NotificationStatus::Sent, &[503, 200]),
            notification(subscription, ago(20), NotificationStatus::GivenUp, &[503, 502]),
            notification(subscription, ago(1), NotificationStatus::Scheduled, &[]),
        ],
    }
}

async fn count(pool: &PgPool, table: &str) -> i64 {
    let statement = format!("SELECT count(*) FROM {table}");
    sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
        .fetch_one(pool)
        .await
        .unwrap()
}

#[testkit::database_test]
async fn a_past_is_there_once_however_often_it_is_written(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now().trunc_subsecs(6));
    let subscription = SubscriptionRow::active().reseller(RESELLER).make(&pool).await;
    for _ in 0..2 {
        let written = store
            .write_past(RESELLER, &past(subscription, now))
            .await
            .unwrap();
        assert_eq!(written, PastWritten::Done);
        for (table, rows) in [
            ("events", 3),
            ("notifications", 3),
            ("delivery_attempts", 4),
            ("dead_letters", 1),
            ("subscription_states", 3),
            ("quota_days", 1),
            ("subscription_budgets", 1),
        ] {
            assert_eq!(count(&pool, table).await, rows, "{table}");
        }
    }
    let hours = store
        .delivery_statistics(subscription, now - TimeDelta::days(7))
        .await
        .unwrap();
    let sum = |of: fn(&store::webhook::StatisticsDelta) -> u64| hours.iter().map(of).sum::<u64>();
    assert_eq!(
        (
            sum(|hour| hour.delivered),
            sum(|hour| hour.failed),
            sum(|hour| hour.retried)
        ),
        (1, 1, 2)
    );
    let types = store
        .type_sums(subscription, now - TimeDelta::days(7), 1)
        .await
        .unwrap()
        .types;
    let delivered: u64 = types.iter().map(|of| of.delivered).sum();
    let delays: u64 = types.iter().map(|of| of.delays.total()).sum();
    assert_eq!((delivered, delays), (1, 1));
    let states = store.list_states(subscription, None, 10).await.unwrap();
    assert_eq!(states[0].state, SubscriptionState::Degraded);
}

#[testkit::database_test]
async fn a_database_of_other_resellers_is_left_alone(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    let unknown = Uuid::now_v7();
    let refused = store.write_past(RESELLER, &past(unknown, now)).await.unwrap();
    assert_eq!(refused, PastWritten::UnknownSubscription(unknown));
    let subscription = SubscriptionRow::active().reseller(RESELLER).make(&pool).await;
    SubscriptionRow::active()
        .reseller("acme")
        .deleted()
        .make(&pool)
        .await;
    let refused = store
        .write_past(RESELLER, &past(subscription, now))
        .await
        .unwrap();
    assert_eq!(refused, PastWritten::OthersToo(vec!["acme".to_owned()]));
    assert_eq!(count(&pool, "events").await, 0);
}

//! Notifications that no process has any more.

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use serde_json::Value;
use sqlx::PgPool;
use store::Rescued;
use store::Store;
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{answered, completion, everything, noon, row, set};
use crate::scene::count;

async fn lost(
    pool: &PgPool,
    state: NotificationState,
    subscription: Uuid,
    attempts: u32,
) -> MadeNotification {
    let row = NotificationRow::in_state(state, subscription).attempts(attempts);
    row.leased_for(TimeDelta::seconds(-1)).make(pool).await
}

#[testkit::database_test]
async fn what_was_lost_waits_again_and_the_last_attempt_is_given_up(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let queued = lost(&pool, NotificationState::Queued, subscription, 0).await;
    let queued_again = lost(&pool, NotificationState::Queued, subscription, 4).await;
    let sending = lost(&pool, NotificationState::Sending, subscription, 3).await;
    let last = lost(&pool, NotificationState::Sending, subscription, 4).await;
    let resent = lost(&pool, NotificationState::Sending, subscription, 5).await;
    set(
        &pool,
        "UPDATE notifications SET resent_after = 4 WHERE id = $1",
        resent.id.uuid(),
    )
    .await;
    let alive = NotificationRow::in_state(NotificationState::Sending, subscription)
        .make(&pool)
        .await;
    let at = noon();
    let rescued = store.rescue_notifications(at, 100, 3).await.unwrap();
    assert_eq!(
        rescued,
        Rescued {
            pending: 1,
            retry: 3,
            given_up: 1
        }
    );
    assert_eq!(row(&pool, queued.id).await.state(), NotificationState::Pending);
    for retried in [&queued_again, &sending, &resent] {
        let row = row(&pool, retried.id).await;
        assert_eq!(
            (row.state(), row.next_attempt_at),
            (NotificationState::Retry, Some(at))
        );
    }
    let given_up = row(&pool, last.id).await;
    assert_eq!((&*given_up.status, given_up.finished_at), ("GIVEN_UP", Some(at)));
    assert_eq!(given_up.reason.as_deref(), Some("delivery/lease-lost"));
    assert_eq!(row(&pool, alive.id).await.state(), NotificationState::Sending);
    let letter: Value = sqlx::query_scalar("SELECT to_jsonb(d) FROM dead_letters d")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(letter["notification_id"], last.id.to_string());
    assert_eq!(
        (&letter["reason"], &letter["lane"]),
        (&"GIVEN_UP".into(), &"reseller".into())
    );
    let mail: Value = sqlx::query_scalar("SELECT data FROM emails")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(mail["error"], Value::Null, "that is no fault of the endpoint");
    let lost_attempts: Vec<(Uuid, i32)> = sqlx::query_as(
        "SELECT notification_id, number FROM delivery_attempts
         WHERE fingerprint = 'delivery/lease-lost' AND status = 'ERROR' AND error_type = 'OTHER' ORDER BY 1",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    let mut expected = vec![(sending.id.uuid(), 3), (last.id.uuid(), 4), (resent.id.uuid(), 5)];
    expected.sort_unstable();
    assert_eq!(lost_attempts, expected);
}

#[testkit::database_test]
async fn the_last_attempt_is_that_of_the_subscriptions_plan(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    set(
        &pool,
        "UPDATE subscriptions SET retry_plan = 'DAY' WHERE id = $1",
        subscription,
    )
    .await;
    let ninth = lost(&pool, NotificationState::Sending, subscription, 9).await;
    let eighth = lost(&pool, NotificationState::Sending, subscription, 8).await;
    store.rescue_notifications(noon(), 100, 3).await.unwrap();
    assert_eq!(row(&pool, eighth.id).await.state(), NotificationState::Retry);
    assert_eq!(row(&pool, ninth.id).await.status, "GIVEN_UP");
}

#[testkit::database_test]
async fn what_comes_after_the_rescue_changes_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = lost(&pool, NotificationState::Sending, subscription, 1).await;
    let late = completion(&made, 1, answered(200));
    store
        .rescue_notifications(SystemClock.now(), 100, 3)
        .await
        .unwrap();
    let before = everything(&pool).await;
    assert!(
        store
            .complete_deliveries(&[late], SystemClock.now())
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(everything(&pool).await, before);
    assert_eq!(
        store
            .rescue_notifications(SystemClock.now(), 100, 3)
            .await
            .unwrap(),
        Rescued::default()
    );
}

#[testkit::database_test]
async fn a_completion_in_time_after_the_end_of_the_lease_counts(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = lost(&pool, NotificationState::Sending, subscription, 1).await;
    let late = completion(&made, 1, answered(200));
    assert_eq!(
        store
            .complete_deliveries(&[late], SystemClock.now())
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(row(&pool, made.id).await.status, "SENT");
}

#[testkit::database_test]
async fn rescuers_at_once_rescue_each_once_and_in_parts(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    for _ in 0..30 {
        lost(&pool, NotificationState::Sending, subscription, 4).await;
    }
    let mut total = 0;
    loop {
        let rescue = || store.rescue_notifications(SystemClock.now(), 7, 3);
        let (a, b) = tokio::join!(rescue(), rescue());
        let (a, b) = (a.unwrap(), b.unwrap());
        assert!(a.given_up <= 7 && b.given_up <= 7);
        if a.given_up + b.given_up == 0 {
            break;
        }
        total += a.given_up + b.given_up;
    }
    assert_eq!((total, count(&pool, "dead_letters").await), (30, 30));
}

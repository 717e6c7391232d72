//! Retries that operators make due at once: which ones, how many at a time, and that each is one attempt.

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::lifecycle::Attempts;
use domain::notification::{NotificationState, NotificationStatus};
use domain::push::{PushState, PushStatus};
use domain::subscription::SubscriptionState;
use sqlx::PgPool;
use store::webhook::NotificationsOf;
use store::{Act, Lane, RetriesNow, RetryNow, Store};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

fn act(at: DateTime<Utc>) -> Act<'static> {
    Act {
        by: "ann",
        note: Some("Swrve is back"),
        at,
    }
}

async fn due_at(pool: &PgPool, table: &str, id: Uuid) -> Option<DateTime<Utc>> {
    let sql = format!("SELECT next_attempt_at FROM {table} WHERE id = $1");
    let found = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(id);
    found.fetch_one(pool).await.unwrap()
}

async fn audited(pool: &PgPool) -> Vec<(String, String)> {
    sqlx::query_as("SELECT action, subject FROM audit_log ORDER BY at, id")
        .fetch_all(pool)
        .await
        .unwrap()
}

fn tried<S>(total: u32, before_resend: u32) -> RetryNow<S> {
    RetryNow::Done(Attempts { total, before_resend })
}

#[testkit::database_test]
async fn one_that_waits_for_its_retry_is_due_at_once_and_keeps_its_attempts(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let hour = TimeDelta::hours(1);
    let push = PushRow::in_state(PushState::Retry).due_in(hour);
    let push = push.attempts(3).make(&pool).await.id;
    let notification = NotificationRow::in_state(NotificationState::Retry, subscription).due_in(hour);
    let notification = notification.attempts(2).make(&pool).await.id;
    for came in [tried(3, 0), RetryNow::Due] {
        assert_eq!(store.retry_push_now(push, act(now)).await.unwrap(), came);
    }
    sqlx::query("UPDATE notifications SET resent_after = 1, resent_at = now() WHERE id = $1")
        .bind(notification.uuid())
        .execute(&pool)
        .await
        .unwrap();
    for came in [tried(2, 1), RetryNow::Due] {
        let again = store.retry_notification_now(notification, act(now)).await;
        assert_eq!(again.unwrap(), came);
    }
    let pushed = store.find_push(push).await.unwrap().unwrap();
    assert_eq!((pushed.status, pushed.attempts), (PushStatus::Retry, 3));
    let at = due_at(&pool, "notifications", notification.uuid()).await.unwrap();
    assert_eq!(at.timestamp_micros(), now.timestamp_micros());
    assert_eq!(
        audited(&pool).await,
        [
            ("push.retry-now".to_owned(), format!("push/{push}")),
            (
                "notification.retry-now".to_owned(),
                format!("notification/{notification}")
            ),
        ],
        "what changes nothing is no act"
    );
    let sent = PushRow::in_state(PushState::Sent).make(&pool).await.id;
    let none = store.retry_push_now(sent, act(now)).await.unwrap();
    assert_eq!(none, RetryNow::NoRetry(PushStatus::Sent));
    let sending = NotificationRow::in_state(NotificationState::Sending, subscription);
    let sending = sending.make(&pool).await.id;
    let none = store.retry_notification_now(sending, act(now)).await.unwrap();
    assert_eq!(none, RetryNow::NoRetry(NotificationStatus::InMemory));
    let unknown = store.retry_push_now(Uuid::now_v7().into(), act(now)).await;
    assert_eq!(unknown.unwrap(), RetryNow::Unknown);
}

#[testkit::database_test]
async fn those_of_a_subscription_or_a_lane_are_due_and_no_others(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    let hour = TimeDelta::hours(1);
    let mine = SubscriptionRow::active().make(&pool).await;
    let other = SubscriptionRow::active().make(&pool).await;
    let ended = SubscriptionRow::in_state(SubscriptionState::Deactivated)
        .make(&pool)
        .await;
    let mut waiting = Vec::new();
    for subscription in [mine, mine, other, ended] {
        let row = NotificationRow::in_state(NotificationState::Retry, subscription).due_in(hour);
        waiting.push(row.make(&pool).await.id.uuid());
    }
    let scheduled = NotificationRow::in_state(NotificationState::Scheduled, mine).due_in(hour);
    let scheduled = scheduled.make(&pool).await.id.uuid();
    let came = |hastened| RetriesNow {
        hastened,
        more: false,
    };
    let of_mine = NotificationsOf::Subscription(mine);
    for count in [2, 0] {
        let retried = store.retry_notifications_now(&of_mine, act(now)).await.unwrap();
        assert_eq!(retried, came(count));
    }
    let all = store.retry_lane_now(Lane::Reseller, act(now)).await.unwrap();
    assert_eq!(all, came(1), "one that gets nothing has none");
    let is_due = async |id| due_at(&pool, "notifications", id).await.unwrap() <= now;
    for (id, due) in waiting.into_iter().zip([true, true, true, false]) {
        assert_eq!(is_due(id).await, due, "{id}");
    }
    assert!(!is_due(scheduled).await, "its turn in line is another matter");

    for state in [PushState::Retry, PushState::Retry, PushState::Scheduled] {
        PushRow::in_state(state).due_in(hour).make(&pool).await;
    }
    for count in [2, 0] {
        let retried = store.retry_lane_now(Lane::Push, act(now)).await.unwrap();
        assert_eq!(retried, came(count));
    }
    let subject = |id| ("subscription.retry-now".to_owned(), format!("subscription/{id}"));
    let lane = ("lane.retry-now".to_owned(), "lane/push".to_owned());
    assert_eq!(audited(&pool).await, [subject(mine), subject(other), lane]);
}

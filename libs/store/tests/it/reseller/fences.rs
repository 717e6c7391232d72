//! Completions that come late, twice, or beside another transaction's locks.

use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use sqlx::PgPool;
use store::Store;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{answered, completion, everything, timed_out};
use crate::scene::count;

#[testkit::database_test]
async fn a_completion_without_the_claim_changes_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    for outcome in [answered(200), answered(410), timed_out()] {
        let made = NotificationRow::in_state(NotificationState::Sending, subscription)
            .make(&pool)
            .await;
        let before = everything(&pool).await;
        let mut late = completion(&made, 1, outcome);
        late.lease_token = Uuid::now_v7();
        let completed = store
            .complete_deliveries(&[late], SystemClock.now())
            .await
            .unwrap();
        assert!(completed.is_empty());
        assert_eq!(everything(&pool).await, before);
    }
}

#[testkit::database_test]
async fn the_same_completion_twice_in_a_batch_is_one(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = NotificationRow::in_state(NotificationState::Sending, subscription)
        .attempts(4)
        .make(&pool)
        .await;
    let once = completion(&made, 4, timed_out());
    let batch = [once.clone(), once.clone(), once];
    assert_eq!(
        store
            .complete_deliveries(&batch, SystemClock.now())
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(count(&pool, "dead_letters").await, 1);
}

#[testkit::database_test]
async fn a_completion_does_not_wait_for_what_only_refers_to_the_subscription(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = NotificationRow::in_state(NotificationState::Sending, subscription)
        .make(&pool)
        .await;
    // As every row does that refers to it, until its transaction ends.
    let mut other = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM subscriptions WHERE id = $1 FOR KEY SHARE")
        .bind(subscription)
        .execute(&mut *other)
        .await
        .unwrap();
    let batch = [completion(&made, 1, answered(410))];
    let completing = store.complete_deliveries(&batch, SystemClock.now());
    let completed = store::within(testkit::PATIENCE, completing).await.unwrap();
    assert!(completed.contains(&made.id));
    other.rollback().await.unwrap();
}

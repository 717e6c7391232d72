//! Subscriptions with a line of what waits for their quota, and what may leave it.

use domain::notification::NotificationId;
use sqlx::PgPool;
use store::Store;
use store::webhook::{ClaimTerms, LimitsChange};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{claim, many_pending, noon, release};
use crate::scene::act;

/// What waits in line, in its order.
pub(super) async fn in_line(pool: &PgPool) -> Vec<NotificationId> {
    let ids: Vec<Uuid> = sqlx::query_scalar(
        "SELECT id FROM notifications WHERE status = 'SCHEDULED' ORDER BY next_attempt_at, id",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    ids.into_iter().map(NotificationId::from).collect()
}

pub(super) async fn set_quota(store: &Store, subscription: Uuid, quota: u32) {
    let limits = LimitsChange {
        daily_quota: Some(Some(quota)),
        ..LimitsChange::default()
    };
    assert!(store.set_limits(subscription, limits, act(noon())).await.unwrap());
}

/// A subscription with a quota of `quota` that has `waiting` in line, as an instance of this version left it.
pub(super) async fn with_line(pool: &PgPool, quota: i32, waiting: i64) -> Uuid {
    let subscription = SubscriptionRow::active().daily_quota(quota).make(pool).await;
    many_pending(pool, subscription, waiting).await;
    sqlx::query(
        "UPDATE notifications n SET status = 'SCHEDULED', reason = 'QUOTA', created_at = c.at, next_attempt_at = c.at
         FROM (SELECT id, now() - row_number() OVER (ORDER BY id DESC) * interval '1 ms' AS at
               FROM notifications WHERE subscription_id = $1) AS c WHERE c.id = n.id",
    )
    .bind(subscription)
    .execute(pool)
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota, release_at)
         VALUES ($1, $2, $3, $3, now() + interval '30 s')",
    )
    .bind(subscription)
    .bind(noon().date_naive())
    .bind(quota)
    .execute(pool)
    .await
    .unwrap();
    subscription
}

/// Claims what is new and what may leave the line; returns how many could be sent.
pub(super) async fn work(store: &Store, pool: &PgPool, new: &[NotificationId], terms: &ClaimTerms) -> usize {
    let sent = claim(store, new, terms).await.claimed.len();
    let released = release(store, pool, terms.at).await;
    sent + claim(store, &released, terms).await.claimed.len()
}

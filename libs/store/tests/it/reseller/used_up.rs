//! What status tells of daily quotas that are used up.

use chrono::TimeDelta;
use sqlx::PgPool;
use store::Store;
use testkit::subscription_factory::SubscriptionRow;

use super::line_scene::{set_quota, with_line};
use super::scene::noon;

#[testkit::database_test]
async fn what_waits_for_the_next_day_is_counted_and_what_moves_today_is_not(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    assert_eq!(store.waiting_for_quotas(noon()).await.unwrap(), None);
    let raised = with_line(&pool, 10, 29).await;
    let other = with_line(&pool, 5, 3).await;
    let counted = async || {
        let waiting = store.waiting_for_quotas(noon()).await.unwrap();
        waiting.map(|waiting| (waiting.notifications, waiting.subscriptions))
    };
    assert_eq!(counted().await, Some((32, 2)));
    let waiting = store.waiting_for_quotas(noon()).await.unwrap().unwrap();
    assert_eq!(waiting.again_at, noon() + TimeDelta::hours(12));
    assert!(!waiting.at_least, "{waiting:?}");
    assert_eq!(waiting.most, raised);
    let tomorrow = noon() + TimeDelta::days(1);
    assert_eq!(store.waiting_for_quotas(tomorrow).await.unwrap(), None);
    set_quota(&store, raised, 1_000).await;
    assert_eq!(counted().await, Some((3, 1)));
    sqlx::query("UPDATE subscriptions SET paused_at = now() WHERE id = $1")
        .bind(other)
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(counted().await, None, "it waits for the end of a pause");
    with_line(&pool, 1, 1_500).await;
    assert_eq!(
        counted().await,
        Some((1_001, 1)),
        "one more than are counted says so"
    );
}

#[testkit::database_test]
async fn lines_that_move_hide_none_that_waits_for_the_next_day(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let one = SubscriptionRow::active().daily_quota(10).make(&pool).await;
    sqlx::query(
        "INSERT INTO subscriptions (id, reseller_id, url, event_types, email, state, state_reason, state_changed_at,
                                    timeout_millis, daily_quota, verified_at, created_at, updated_at)
         SELECT gen_random_uuid(), reseller_id, url, event_types, email, state, state_reason, state_changed_at,
                timeout_millis, daily_quota, verified_at, created_at, updated_at
         FROM subscriptions, generate_series(1, 1000) WHERE id = $1",
    )
    .bind(one)
    .execute(&pool)
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota, release_at)
         SELECT id, $1, 0, 10, now() FROM subscriptions",
    )
    .bind(noon().date_naive())
    .execute(&pool)
    .await
    .unwrap();
    with_line(&pool, 5, 3).await;
    let waiting = store.waiting_for_quotas(noon()).await.unwrap().unwrap();
    assert_eq!((waiting.notifications, waiting.subscriptions), (3, 1));
    assert!(waiting.at_least, "{waiting:?}");
}

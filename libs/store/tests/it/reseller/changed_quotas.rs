//! A quota that changes holds at once for what waits, and no place of a day is given away twice.

use chrono::TimeDelta;
use domain::notification::{NotificationId, NotificationState};
use sqlx::PgPool;
use store::Store;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::reseller::line_scene::{in_line, set_quota, with_line, work};
use crate::reseller::scene::{claim, claimed_ids, ids, line_terms, noon, notifications, release, terms};
use crate::scene::LONG;

#[testkit::database_test]
async fn a_raised_quota_holds_at_once_for_a_hundred_thousand_that_wait_and_for_what_comes(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = with_line(&pool, 1_000, 100_000).await;
    let line = in_line(&pool).await;
    assert_eq!(line.len(), 100_000);
    let released = async || {
        let release = store
            .release_lines(noon(), &line_terms(), 1_000, 1_000, LONG)
            .await;
        let ids = release.unwrap().promoted;
        ids.into_iter()
            .map(|one| NotificationId::from(one.id))
            .collect::<Vec<_>>()
    };
    assert!(
        release(&store, &pool, noon()).await.is_empty(),
        "the day is used up"
    );
    set_quota(&store, subscription, 1_000_000).await;
    // No time passes between two looks: the share alone bounds them.
    assert_eq!(released().await, line[..1_000], "the oldest first");
    assert_eq!(release(&store, &pool, noon()).await, line[1_000..2_000]);
    let new = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    let claims = claim(&store, &[new.id], &terms(noon())).await;
    assert_eq!(claims.over_quota, 1, "it overtakes nothing");
    assert!(claims.in_line.contains(&subscription) && claims.held_up.is_empty());
    assert_eq!(in_line(&pool).await.last(), Some(&new.id));
}

#[testkit::database_test]
async fn a_raised_default_holds_for_what_waits(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let mut terms = terms(noon());
    terms.daily_quota = 10;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 50).await);
    assert_eq!(claim(&store, &made, &terms).await.claimed.len(), 10);
    terms.daily_quota = 40;
    let released = release(&store, &pool, terms.at).await;
    let claims = claim(&store, &released, &terms).await;
    assert_eq!(claimed_ids(&claims), made[10..40]);
    assert_eq!(in_line(&pool).await, made[40..]);
}

#[testkit::database_test]
async fn a_lowered_quota_holds_for_what_waits_and_owes_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(10).make(&pool).await;
    let mut terms = terms(noon());
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 25).await);
    assert_eq!(claim(&store, &made, &terms).await.claimed.len(), 10);
    set_quota(&store, subscription, 3).await;
    for expected in [0, 3, 3] {
        assert_eq!(work(&store, &pool, &[], &terms).await, expected);
        terms.at += TimeDelta::days(1);
    }
    set_quota(&store, subscription, 100).await;
    assert_eq!(work(&store, &pool, &[], &terms).await, 9, "all that is left");
}

#[testkit::database_test]
async fn a_quota_that_goes_down_and_up_again_gives_no_place_of_the_day_twice(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(10).make(&pool).await;
    let terms = terms(noon());
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 40).await);
    assert_eq!(claim(&store, &made, &terms).await.claimed.len(), 10);
    for (quota, expected) in [(2, 0), (10, 0), (12, 2), (1, 0), (15, 3)] {
        set_quota(&store, subscription, quota).await;
        assert_eq!(work(&store, &pool, &[], &terms).await, expected, "quota {quota}");
    }
}

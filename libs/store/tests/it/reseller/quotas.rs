//! The daily quota: no day ever gets more, and what exceeds it waits.

use chrono::{NaiveDate, TimeDelta};
use chrono_tz::Tz;
use domain::notification::NotificationState;
use sqlx::PgPool;
use store::Store;
use store::webhook::ClaimTerms;
use testkit::subscription_factory::SubscriptionRow;

use crate::reseller::line_scene::{in_line, work};
use crate::reseller::scene::{claim, claimed_ids, clear, ids, noon, notifications, release, row, terms};

#[testkit::database_test]
async fn the_oldest_get_what_is_left_of_the_day_and_the_others_wait_in_line(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(10).make(&pool).await;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 25).await);
    let terms = terms(noon());
    let mut mixed = made.clone();
    mixed.reverse();
    mixed.swap(3, 17);
    let claims = claim(&store, &mixed, &terms).await;
    assert_eq!(claimed_ids(&claims), made[..10]);
    assert_eq!((claims.over_quota, claims.over_rate), (15, 0));
    assert_eq!(in_line(&pool).await, made[10..]);
    for id in &made[10..] {
        let row = row(&pool, *id).await;
        assert_eq!(
            (&*row.status, row.reason.as_deref()),
            ("SCHEDULED", Some("QUOTA"))
        );
        assert_eq!(row.charged_on, None, "nothing is reserved");
    }
}

#[testkit::database_test]
async fn the_last_place_is_given_away_and_not_one_more(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let mut terms = terms(noon());
    terms.daily_quota = 5;
    for expected in [1, 1, 1, 1, 1, 0, 0] {
        let made = notifications(&pool, NotificationState::Queued, subscription, 1).await;
        let claims = claim(&store, &ids(&made), &terms).await;
        assert_eq!(claims.claimed.len(), expected);
        assert_eq!(claims.over_quota, 1 - expected as u64);
    }
}

#[testkit::database_test]
async fn claimers_at_once_never_exceed_a_quota_and_lose_no_place(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let terms = terms(noon());
    for (round, quota) in [2, 37, 99, 100, 1_000].into_iter().enumerate() {
        let subscription = SubscriptionRow::active().daily_quota(quota).make(&pool).await;
        let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 100).await);
        let claimers: Vec<_> = made
            .chunks(9)
            .map(|ids| {
                let (store, ids) = (store.clone(), ids.to_vec());
                tokio::spawn(async move { claim(&store, &ids, &terms).await })
            })
            .collect();
        let (mut claimed, mut over) = (0, 0);
        for claimer in claimers {
            let claims = claimer.await.unwrap();
            claimed += claims.claimed.len();
            over += claims.over_quota;
        }
        let quota = quota.unsigned_abs();
        assert_eq!(claimed, 100.min(quota as usize), "round {round}");
        assert_eq!(over, 100_u64.saturating_sub(quota.into()), "round {round}");
        assert_eq!(in_line(&pool).await.len() as u64, over, "round {round}");
        clear(&pool).await;
    }
}

#[testkit::database_test]
async fn each_subscription_has_its_own_quota(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut all = Vec::new();
    let mut expected = Vec::new();
    for quota in [1, 2, 3, 50] {
        let subscription = SubscriptionRow::active().daily_quota(quota).make(&pool).await;
        let made = ids(&notifications(&pool, NotificationState::Pending, subscription, 10).await);
        expected.extend_from_slice(&made[..10.min(quota as usize)]);
        all.extend(made);
    }
    expected.sort_unstable();
    let claims = claim(&store, &all, &terms(noon())).await;
    assert_eq!(claimed_ids(&claims), expected);
}

#[testkit::database_test]
async fn a_day_begins_where_its_zone_says(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let zones: [(Tz, &str, &str); 4] = [
        (
            chrono_tz::UTC,
            "2026-03-28T23:59:59.999999Z",
            "2026-03-29T00:00:00Z",
        ),
        (
            chrono_tz::Europe::Riga,
            "2026-03-29T20:59:59Z",
            "2026-03-29T21:00:00Z",
        ),
        (
            chrono_tz::Asia::Kathmandu,
            "2026-03-28T18:14:59Z",
            "2026-03-28T18:15:00Z",
        ),
        (
            chrono_tz::America::New_York,
            "2026-03-08T04:59:59Z",
            "2026-03-08T05:00:00Z",
        ),
    ];
    for (zone, before, after) in zones {
        let subscription = SubscriptionRow::active().daily_quota(2).make(&pool).await;
        let mut claimed = Vec::new();
        for at in [before, before, after] {
            let new = notifications(&pool, NotificationState::Queued, subscription, 2).await;
            let terms = ClaimTerms {
                zone,
                ..terms(at.parse().unwrap())
            };
            claimed.push(claim(&store, &ids(&new), &terms).await.claimed.len());
            // Nothing in line, so that the day alone decides.
            sqlx::query("DELETE FROM notifications WHERE status = 'SCHEDULED'")
                .execute(&pool)
                .await
                .unwrap();
            release(&store, &pool, terms.at).await;
        }
        assert_eq!(claimed, [2, 0, 2], "{zone}");
        clear(&pool).await;
    }
}

#[testkit::database_test]
async fn what_is_carried_over_the_days_is_sent_in_its_turn_and_within_each_quota(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(10).make(&pool).await;
    let arrivals = [35, 1, 0, 20, 0, 3, 0, 0, 25, 0, 0, 0];
    let expected = [10, 10, 10, 10, 10, 9, 0, 0, 10, 10, 5, 0];
    let mut day = noon();
    for (number, (arriving, expected)) in arrivals.into_iter().zip(expected).enumerate() {
        let new = ids(&notifications(&pool, NotificationState::Queued, subscription, arriving).await);
        assert_eq!(
            work(&store, &pool, &new, &terms(day)).await,
            expected,
            "day {number}"
        );
        day += TimeDelta::days(1);
    }
    assert!(in_line(&pool).await.is_empty());
}

#[testkit::database_test]
async fn what_was_used_of_days_that_are_over_is_no_debt_when_the_default_falls(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let mut terms = terms(noon());
    for (quota, arriving, expected) in [(50, 50, 50), (10, 12, 10)] {
        terms.daily_quota = quota;
        let new = ids(&notifications(&pool, NotificationState::Queued, subscription, arriving).await);
        assert_eq!(
            claim(&store, &new, &terms).await.claimed.len(),
            expected,
            "quota {quota}"
        );
        terms.at += TimeDelta::days(1);
    }
}

#[testkit::database_test]
async fn a_clock_that_went_back_gives_no_place_away_twice(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(3).make(&pool).await;
    for (hours, expected) in [(0, 3), (-24, 0), (0, 0)] {
        let made = notifications(&pool, NotificationState::Queued, subscription, 3).await;
        let terms = terms(noon() + TimeDelta::hours(hours));
        let claimed = claim(&store, &ids(&made), &terms).await.claimed.len();
        assert_eq!(claimed, expected, "{hours} hours");
    }
    let days: Vec<Option<NaiveDate>> = sqlx::query_scalar("SELECT charged_on FROM notifications ORDER BY 1")
        .fetch_all(&pool)
        .await
        .unwrap();
    let charged: Vec<NaiveDate> = days.into_iter().flatten().collect();
    assert_eq!(charged, [noon().date_naive(); 3]);
}

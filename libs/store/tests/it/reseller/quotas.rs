//! The daily quota: nobody ever gets more, and what exceeds it has its place on a coming day, where `domain::quota` says.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::notification::{NotificationId, NotificationState};
use domain::quota::{Budget, day_of};
use sqlx::PgPool;
use store::Store;
use store::reseller::ClaimTerms;
use testkit::subscription_factory::SubscriptionRow;

use crate::reseller::scene::{
    claim, claimed_ids, clear, ids, noon, notifications, promote_due_ids, row, terms,
};

/// When what got the places `numbers` of a fresh budget is released, in the order of the places.
fn releases(
    day: NaiveDate,
    numbers: std::ops::Range<u64>,
    quota: u32,
    terms: &ClaimTerms,
) -> Vec<DateTime<Utc>> {
    let budget = Budget { day, used: 0 };
    numbers
        .map(|number| {
            budget
                .place(number, quota)
                .release_at(quota, terms.zone, terms.release_window)
        })
        .collect()
}

/// When everything that is scheduled is due, in that order.
async fn scheduled(pool: &PgPool) -> Vec<DateTime<Utc>> {
    sqlx::query_scalar("SELECT next_attempt_at FROM notifications WHERE status = 'SCHEDULED' ORDER BY 1")
        .fetch_all(pool)
        .await
        .unwrap()
}

/// The database counts in microseconds.
fn assert_same_times(found: &[DateTime<Utc>], expected: &[DateTime<Utc>], case: &str) {
    assert_eq!(found.len(), expected.len(), "{case}");
    for (found, expected) in found.iter().zip(expected) {
        let off = (*found - *expected).abs();
        assert!(
            off <= TimeDelta::microseconds(1),
            "{found} instead of {expected}: {case}"
        );
    }
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn the_oldest_get_the_places_of_today_and_the_others_their_day(pool: PgPool) {
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
    let today = terms.at.date_naive();
    let expected = releases(today, 10..25, 10, &terms);
    for (n, id) in made[10..].iter().enumerate() {
        let row = row(&pool, *id).await;
        assert_eq!(
            (&*row.status, row.reason.as_deref()),
            ("SCHEDULED", Some("QUOTA"))
        );
        assert_same_times(&[row.next_attempt_at.unwrap()], &expected[n..=n], &n.to_string());
        let days = if n < 10 { 1 } else { 2 };
        assert_eq!(row.charged_on, Some(today + TimeDelta::days(days)));
    }
}

#[sqlx::test(migrator = "store::MIGRATOR")]
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

#[sqlx::test(migrator = "store::MIGRATOR")]
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
        let (quota, today) = (quota.unsigned_abs(), terms.at.date_naive());
        assert_eq!(claimed, 100.min(quota as usize), "round {round}");
        assert_eq!(over, 100_u64.saturating_sub(quota.into()), "round {round}");
        let expected = releases(today, u64::from(quota).min(100)..100, quota, &terms);
        assert_same_times(&scheduled(&pool).await, &expected, &format!("quota {quota}"));
        clear(&pool).await;
    }
}

#[sqlx::test(migrator = "store::MIGRATOR")]
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

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn places_lie_where_the_domain_says_in_every_zone_at_every_hour(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let zones: [Tz; 7] = [
        chrono_tz::UTC,
        chrono_tz::Europe::Riga,
        chrono_tz::America::New_York,
        chrono_tz::Asia::Kathmandu,
        chrono_tz::Asia::Beirut,
        chrono_tz::America::Havana,
        chrono_tz::Pacific::Kiritimati,
    ];
    let times = [
        "2026-03-28T23:59:59.999999Z",
        "2026-03-29T00:00:00Z",
        "2024-03-09T22:30:00Z",
        "2024-03-30T12:00:00Z",
        "2024-10-26T22:00:00Z",
        "2024-11-02T15:00:00Z",
        "2026-12-31T23:30:00Z",
    ];
    for (n, (zone, time)) in zones
        .iter()
        .flat_map(|zone| times.map(|time| (*zone, time)))
        .enumerate()
    {
        let at: DateTime<Utc> = time.parse().unwrap();
        let quota = [1, 2, 3, 7, 10][n % 5];
        let window = [0, 60, 21_600, 86_399][n % 4];
        let case = format!("{zone} at {time} with quota {quota} over {window} s");
        let terms = ClaimTerms {
            zone,
            release_window: std::time::Duration::from_secs(window),
            ..terms(at)
        };
        let subscription = SubscriptionRow::active().daily_quota(quota).make(&pool).await;
        let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 12).await);
        let claims = claim(&store, &made, &terms).await;
        let quota = quota.unsigned_abs();
        assert_eq!(claimed_ids(&claims), made[..quota as usize], "{case}");
        let expected = releases(day_of(at, zone), quota.into()..12, quota, &terms);
        assert_same_times(&scheduled(&pool).await, &expected, &case);
        clear(&pool).await;
    }
}

/// Claims what is new and what has come due; returns how many could be sent.
async fn work(store: &Store, new: &[NotificationId], terms: &ClaimTerms) -> usize {
    let mut sent = claim(store, new, terms).await.claimed.len();
    let due = promote_due_ids(store, terms.at).await;
    let claims = claim(store, &due, terms).await;
    assert_eq!(
        claims.over_quota, 0,
        "what has a place on a day is sent on that day"
    );
    sent += claims.claimed.len();
    sent
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn what_is_carried_over_the_days_is_sent_in_its_turn_and_within_each_quota(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(10).make(&pool).await;
    let arrivals = [35, 1, 0, 20, 0, 3, 0, 0, 25, 0, 0, 0];
    let expected = [10, 10, 10, 10, 10, 9, 0, 0, 10, 10, 5, 0];
    let mut day = noon();
    for (number, (arriving, expected)) in arrivals.into_iter().zip(expected).enumerate() {
        let new = ids(&notifications(&pool, NotificationState::Queued, subscription, arriving).await);
        assert_eq!(work(&store, &new, &terms(day)).await, expected, "day {number}");
        day += TimeDelta::days(1);
    }
    assert!(scheduled(&pool).await.is_empty());
}

#[sqlx::test(migrator = "store::MIGRATOR")]
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

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn what_waits_for_coming_days_is_not_forgotten_when_the_default_rises(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let mut terms = terms(noon());
    terms.daily_quota = 10;
    let new = ids(&notifications(&pool, NotificationState::Queued, subscription, 50).await);
    assert_eq!(claim(&store, &new, &terms).await.claimed.len(), 10);
    terms.at += TimeDelta::days(1);
    terms.daily_quota = 40;
    let new = ids(&notifications(&pool, NotificationState::Queued, subscription, 60).await);
    let sent = work(&store, &new, &terms).await;
    assert!((10..=40).contains(&sent), "{sent} on a day with a quota of 40");
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_clock_that_went_back_gives_no_place_away_twice(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(3).make(&pool).await;
    // Two times three wait for the two days after, which thereby have no place left.
    for (hours, expected) in [(0, 3), (-24, 0), (0, 0), (24, 0)] {
        let made = notifications(&pool, NotificationState::Queued, subscription, 3).await;
        let terms = terms(noon() + TimeDelta::hours(hours));
        let claimed = claim(&store, &ids(&made), &terms).await.claimed.len();
        assert_eq!(claimed, expected, "{hours} hours");
    }
    let days: Vec<NaiveDate> = sqlx::query_scalar("SELECT charged_on FROM notifications ORDER BY 1")
        .fetch_all(&pool)
        .await
        .unwrap();
    for day in &days {
        assert_eq!(days.iter().filter(|other| *other == day).count(), 3, "{day}");
    }
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn one_place_a_day_and_thousands_that_want_it_lie_years_ahead(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(1).make(&pool).await;
    sqlx::query("INSERT INTO subscription_budgets VALUES ($1, current_date, 9000000000000, 1)")
        .bind(subscription)
        .execute(&pool)
        .await
        .unwrap();
    let made = notifications(&pool, NotificationState::Queued, subscription, 2).await;
    let claims = claim(&store, &ids(&made), &terms(noon())).await;
    assert_eq!(claims.over_quota, 2);
}

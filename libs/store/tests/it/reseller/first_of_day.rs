//! The first claim of a subscription, ever or on a day: the row that counts is made, or goes over to the day. No place is given away
//! twice, and the statement that claims the ordinary takes the first of a day too.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{NaiveDate, TimeDelta};
use domain::notification::NotificationState;
use sqlx::PgPool;
use store::Store;
use store::webhook::ClaimTerms;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{claim, clear, ids, noon, notifications, terms};
use crate::scene::until_blocked;

/// What was counted of a subscription before.
#[derive(Debug, Clone, Copy)]
struct Before {
    days_ago: i64,
    used: i64,
    quota: i32,
}

fn days_ago(days: i64) -> NaiveDate {
    (noon() - TimeDelta::days(days)).date_naive()
}

async fn count_before(pool: &PgPool, subscription: Uuid, before: Option<Before>) {
    let Some(before) = before else { return };
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota) VALUES ($1, $2, $3, $4)",
    )
    .bind(subscription)
    .bind(days_ago(before.days_ago))
    .bind(before.used)
    .bind(before.quota)
    .execute(pool)
    .await
    .unwrap();
}

async fn counted(pool: &PgPool, subscription: Uuid) -> (NaiveDate, i64, i32) {
    sqlx::query_as("SELECT day, used, quota FROM subscription_budgets WHERE subscription_id = $1")
        .bind(subscription)
        .fetch_one(pool)
        .await
        .unwrap()
}

fn before(days_ago: i64, used: i64, quota: i32) -> Option<Before> {
    Some(Before {
        days_ago,
        used,
        quota,
    })
}

#[testkit::database_test]
async fn what_is_first_on_its_day_is_claimed_by_the_statement_that_claims_the_others(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let default = 1_000_000;
    // Today, yesterday, and today under another quota.
    let cases = [
        (before(0, 1, default), 3),
        (before(1, 7, default), 2),
        (before(0, 3, 4), 5),
    ];
    let (mut all, mut expected) = (Vec::new(), Vec::new());
    for (before, used) in cases {
        let subscription = SubscriptionRow::active().make(&pool).await;
        count_before(&pool, subscription, before).await;
        all.extend(ids(&notifications(
            &pool,
            NotificationState::Queued,
            subscription,
            2,
        )
        .await));
        expected.push((subscription, used));
    }
    let claims = claim(&store, &all, &terms(noon())).await;
    let tokens: BTreeSet<Uuid> = claims.claimed.iter().map(|claimed| claimed.lease_token).collect();
    assert_eq!((claims.claimed.len(), tokens.len()), (6, 1));
    for (subscription, used) in expected {
        assert_eq!(counted(&pool, subscription).await, (days_ago(0), used, default));
    }
    let ended: Vec<(NaiveDate, i64)> = sqlx::query_as("SELECT day, used FROM quota_days")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(ended, [(days_ago(1), 7)], "the day that has ended is kept");
}

#[testkit::database_test]
async fn the_first_of_a_day_gets_what_the_quota_of_the_moment_leaves_of_it(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    // What was counted before, the quota now, how many ask, how many of them are claimed, and what is counted then.
    let cases = [
        (None, 3, 2, 2, 2),
        (None, 2, 2, 2, 2),
        (None, 1, 2, 1, 1),
        (None, 0, 2, 0, 0),
        (None, u32::MAX, 2, 2, 2),
        (before(1, 3, 3), 3, 3, 3, 3),
        (before(1, 3, 3), 2, 3, 2, 2),
        (before(1, 3, 3), 0, 1, 0, 3),
        // Places of the day that an earlier version gave out the day before.
        (before(1, 5, 3), 3, 1, 1, 3),
        (before(1, 5, 3), 3, 2, 1, 3),
        (before(3, 100, 3), 3, 1, 0, 100),
        (before(0, 3, 3), 5, 2, 2, 5),
        (before(0, 3, 3), 4, 2, 1, 4),
        (before(0, 2, 5), 3, 1, 1, 3),
        (before(0, 3, 5), 3, 1, 0, 3),
        // By a clock that is a day ahead.
        (before(-1, 1, 9), 9, 1, 0, 1),
    ];
    for (number, (before, quota, asking, expected, used)) in cases.into_iter().enumerate() {
        let subscription = SubscriptionRow::active().make(&pool).await;
        count_before(&pool, subscription, before).await;
        let made = notifications(&pool, NotificationState::Queued, subscription, asking).await;
        let terms = ClaimTerms {
            daily_quota: quota,
            ..terms(noon())
        };
        let claims = claim(&store, &ids(&made), &terms).await;
        assert_eq!(claims.claimed.len(), expected, "case {number}");
        assert_eq!(claims.over_quota, (made.len() - expected) as u64, "case {number}");
        assert_eq!(counted(&pool, subscription).await.1, used, "case {number}");
    }
}

#[testkit::database_test]
async fn two_claimers_of_a_day_s_first_never_exceed_a_quota_and_lose_no_place(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let terms = terms(noon());
    for (before, quota) in [None, before(1, 5, 5)]
        .into_iter()
        .flat_map(|before| [3, 4, 7, 8, 9].map(|quota| (before, quota)))
    {
        let (mut forth, mut back) = (Vec::new(), Vec::new());
        let mut subscriptions = Vec::new();
        for _ in 0..10 {
            let subscription = SubscriptionRow::active().daily_quota(quota).make(&pool).await;
            count_before(&pool, subscription, before).await;
            let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 8).await);
            forth.extend_from_slice(&made[..4]);
            back.extend_from_slice(&made[4..]);
            subscriptions.push(subscription);
        }
        back.reverse();
        let (one, other) = tokio::join!(claim(&store, &forth, &terms), claim(&store, &back, &terms));
        let mut claimed: BTreeMap<Uuid, i64> = BTreeMap::new();
        for one in one.claimed.iter().chain(&other.claimed) {
            *claimed.entry(one.subscription_id).or_default() += 1;
        }
        let expected = i64::from(quota).min(8);
        for subscription in subscriptions {
            assert_eq!(claimed[&subscription], expected, "quota {quota}, {before:?}");
            assert_eq!(
                counted(&pool, subscription).await,
                (days_ago(0), expected, quota),
                "{before:?}"
            );
        }
        clear(&pool).await;
    }
}

/// The row is made, or goes over to the day, in a transaction that commits while the claim waits for it.
#[testkit::database_test]
async fn a_claim_that_waits_for_the_first_of_the_day_counts_what_that_one_took(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let terms = terms(noon());
    let made_meanwhile =
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota) VALUES ($1, $2, 2, 3)";
    let gone_over = "UPDATE subscription_budgets SET day = $2, used = 2 WHERE subscription_id = $1";
    for (before, statement) in [(None, made_meanwhile), (before(1, 3, 3), gone_over)] {
        let subscription = SubscriptionRow::active().daily_quota(3).make(&pool).await;
        count_before(&pool, subscription, before).await;
        let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 2).await);
        let mut other = pool.begin().await.unwrap();
        sqlx::query(statement)
            .bind(subscription)
            .bind(days_ago(0))
            .execute(&mut *other)
            .await
            .unwrap();
        let claiming = tokio::spawn({
            let store = store.clone();
            async move { claim(&store, &made, &terms).await }
        });
        until_blocked(&pool, 1).await;
        other.commit().await.unwrap();
        let claims = claiming.await.unwrap();
        assert_eq!((claims.claimed.len(), claims.over_quota), (1, 1), "{statement}");
        assert_eq!(counted(&pool, subscription).await, (days_ago(0), 3, 3));
    }
}

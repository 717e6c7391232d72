//! Requests per second: every attempt has a slot of its own, whoever claims.

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationState;
use sqlx::PgPool;
use store::Store;
use store::reseller::Claims;
use testkit::notification_factory::MadeNotification;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{
    claim, claimed_ids, completion, ids, noon, notifications, promote_due_ids, row, set, terms, timed_out,
};

async fn next_slot(pool: &PgPool, subscription: Uuid) -> DateTime<Utc> {
    sqlx::query_scalar("SELECT next_slot_at FROM subscription_paces WHERE subscription_id = $1")
        .bind(subscription)
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn slots(pool: &PgPool) -> Vec<DateTime<Utc>> {
    sqlx::query_scalar("SELECT slot_at FROM notifications WHERE slot_at IS NOT NULL ORDER BY 1")
        .fetch_all(pool)
        .await
        .unwrap()
}

fn send_times(claims: &Claims, otherwise: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let mut times: Vec<_> = claims
        .claimed
        .iter()
        .map(|one| one.send_at.unwrap_or(otherwise))
        .collect();
    times.sort_unstable();
    times
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn what_has_a_slot_soon_is_claimed_for_it_and_the_rest_waits_for_its_own(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active()
        .requests_per_second(10)
        .make(&pool)
        .await;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 25).await);
    let terms = terms(noon());
    let claims = claim(&store, &made, &terms).await;
    let slot = |n: usize| terms.at + TimeDelta::milliseconds(100) * i32::try_from(n).unwrap();
    assert_eq!(claimed_ids(&claims), made[..16], "those of the next 1.5 s");
    assert_eq!((claims.over_rate, claims.over_quota), (9, 0));
    for claimed in &claims.claimed {
        let place = made.iter().position(|id| *id == claimed.id).unwrap();
        assert_eq!(claimed.send_at, (place > 0).then(|| slot(place)));
    }
    for (n, id) in made.iter().enumerate().skip(16) {
        let row = row(&pool, *id).await;
        assert_eq!((&*row.status, row.reason.as_deref()), ("SCHEDULED", Some("RATE")));
        assert_eq!((row.next_attempt_at, row.slot_at), (Some(slot(n)), Some(slot(n))));
    }
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn claimers_at_once_share_the_slots(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active()
        .requests_per_second(50)
        .make(&pool)
        .await;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 200).await);
    let terms = terms(noon());
    let claimers: Vec<_> = made
        .chunks(17)
        .map(|ids| {
            let (store, ids) = (store.clone(), ids.to_vec());
            tokio::spawn(async move { claim(&store, &ids, &terms).await })
        })
        .collect();
    let mut claimed = 0;
    for claimer in claimers {
        claimed += claimer.await.unwrap().claimed.len();
    }
    assert_eq!(claimed, 76, "those of the next 1.5 s");
    let expected: Vec<_> = (0..200)
        .map(|n| terms.at + TimeDelta::milliseconds(20) * n)
        .collect();
    assert_eq!(slots(&pool).await, expected);
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn what_waited_for_its_slot_keeps_it(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().requests_per_second(1).make(&pool).await;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 5).await);
    let mut terms = terms(noon());
    let begin = terms.at;
    assert_eq!(claim(&store, &made, &terms).await.claimed.len(), 2);
    for n in 2..5 {
        // The promoter is a second ahead of the slots.
        terms.at = begin + TimeDelta::milliseconds(1_000 * n - 900);
        let promoted = promote_due_ids(&store, terms.at).await;
        let claims = claim(&store, &promoted, &terms).await;
        assert_eq!(claims.over_rate, 0);
        assert_eq!(send_times(&claims, terms.at), [begin + TimeDelta::seconds(n)]);
    }
    assert_eq!(
        next_slot(&pool, subscription).await,
        begin + TimeDelta::seconds(5)
    );
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_retry_gets_a_slot_of_its_own(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().requests_per_second(1).make(&pool).await;
    let made = notifications(&pool, NotificationState::Queued, subscription, 1).await;
    let mut terms = terms(noon());
    let claims = claim(&store, &ids(&made), &terms).await;
    let claimed = MadeNotification {
        lease_token: claims.claimed[0].lease_token,
        ..made[0]
    };
    store
        .complete_deliveries(&[completion(&claimed, 1, timed_out())], terms.at)
        .await
        .unwrap();
    set(
        &pool,
        "UPDATE notifications SET status = 'IN_MEMORY', leased_until = now() + interval '1 h', next_attempt_at = NULL
         WHERE id = $1",
        made[0].id.uuid(),
    )
    .await;
    terms.at += TimeDelta::milliseconds(200);
    let claims = claim(&store, &ids(&made), &terms).await;
    assert_eq!(
        send_times(&claims, terms.at),
        [terms.at + TimeDelta::milliseconds(800)]
    );
    assert_eq!(claims.claimed[0].attempts.total, 2);
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_retry_without_a_slot_soon_waits_in_the_retry_lane(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().requests_per_second(1).make(&pool).await;
    let first = notifications(&pool, NotificationState::Queued, subscription, 9).await;
    let terms = terms(noon());
    claim(&store, &ids(&first), &terms).await;
    let retry =
        testkit::notification_factory::NotificationRow::in_state(NotificationState::Queued, subscription);
    let retry = retry.attempts(1).make(&pool).await;
    assert_eq!(claim(&store, &[retry.id], &terms).await.over_rate, 1);
    let row = row(&pool, retry.id).await;
    assert_eq!(
        (&*row.status, row.attempts, row.reason.as_deref()),
        ("RETRY", 1, Some("RATE"))
    );
    assert_eq!(row.next_attempt_at, Some(terms.at + TimeDelta::seconds(9)));
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn time_without_requests_is_not_saved_up(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().requests_per_second(2).make(&pool).await;
    let mut terms = terms(noon());
    for _ in 0..2 {
        let made = notifications(&pool, NotificationState::Queued, subscription, 3).await;
        let claims = claim(&store, &ids(&made), &terms).await;
        let half = TimeDelta::milliseconds(500);
        assert_eq!(
            send_times(&claims, terms.at),
            [terms.at, terms.at + half, terms.at + half * 2]
        );
        terms.at += TimeDelta::hours(1);
    }
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_slot_that_was_missed_long_ago_is_replaced(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().requests_per_second(1).make(&pool).await;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 6).await);
    let mut terms = terms(noon());
    claim(&store, &made, &terms).await;
    terms.at += TimeDelta::minutes(10);
    let promoted = promote_due_ids(&store, terms.at).await;
    assert_eq!(promoted.len(), 4);
    let claims = claim(&store, &promoted, &terms).await;
    assert_eq!(
        send_times(&claims, terms.at),
        [terms.at, terms.at + TimeDelta::seconds(1)]
    );
    assert_eq!(claims.over_rate, 2);
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn the_default_rate_is_for_those_without_their_own(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut terms = terms(noon());
    terms.requests_per_second = Some(1);
    for (own, expected) in [(None, 2), (Some(4), 7)] {
        let mut subscription = SubscriptionRow::active();
        if let Some(own) = own {
            subscription = subscription.requests_per_second(own);
        }
        let subscription = subscription.make(&pool).await;
        let made = notifications(&pool, NotificationState::Queued, subscription, 10).await;
        assert_eq!(claim(&store, &ids(&made), &terms).await.claimed.len(), expected);
    }
}

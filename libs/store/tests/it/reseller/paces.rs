//! Requests per second: every attempt has a slot of its own, by the clock of the database, whichever process claims.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::{NotificationId, NotificationState};
use sqlx::PgPool;
use store::Store;
use store::webhook::{ClaimTerms, Claims, LimitsChange};
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;

use crate::reseller::scene::{
    claim, claimed_ids, clear, completion, ids, noon, notifications, pass, release, row, set, terms,
    timed_out,
};
use crate::scene::act;

/// Seconds from `at` to each send, in order. A claim is asked for some time after `at`, which all of them are late by.
fn waits(claims: &Claims, at: DateTime<Utc>) -> Vec<f64> {
    let mut waits: Vec<f64> = claims
        .claimed
        .iter()
        .map(|one| one.send_at.map_or(0.0, |send_at| (send_at - at).as_seconds_f64()))
        .collect();
    waits.sort_unstable_by(f64::total_cmp);
    waits
}

/// Claims at `at` and tells when what was claimed is to be sent, and how many were not.
async fn claim_rated(store: &Store, ids: &[NotificationId]) -> (Vec<NotificationId>, u64) {
    let claims = claim(store, ids, &terms(noon())).await;
    (claimed_ids(&claims), claims.over_rate)
}

#[testkit::database_test]
async fn what_has_a_slot_soon_is_claimed_for_it_and_the_rest_waits_in_line(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active()
        .requests_per_second(10)
        .make(&pool)
        .await;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 25).await);
    let terms = terms(noon());
    let claims = claim(&store, &made, &terms).await;
    assert_eq!(claimed_ids(&claims), made[..16], "those of the next 1.5 s");
    assert_eq!((claims.over_rate, claims.over_quota), (9, 0));
    let waits = waits(&claims, terms.at);
    for pair in waits[1..].windows(2) {
        assert!((pair[1] - pair[0] - 0.1).abs() < 0.05, "{waits:?}");
    }
    for id in &made[16..] {
        let row = row(&pool, *id).await;
        assert_eq!((&*row.status, row.reason.as_deref()), ("SCHEDULED", Some("RATE")));
        assert_eq!((row.slot_at, row.charged_on), (None, None), "nothing is reserved");
    }
}

#[testkit::database_test]
async fn claimers_at_once_share_the_slots(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    // Slow enough for the whole test to take less time than there is between two slots.
    let subscription = SubscriptionRow::active().requests_per_second(1).make(&pool).await;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 60).await);
    let terms = ClaimTerms {
        horizon: Duration::from_secs(1_000),
        ..terms(noon())
    };
    let claimers: Vec<_> = made
        .chunks(7)
        .map(|ids| {
            let (store, ids) = (store.clone(), ids.to_vec());
            tokio::spawn(async move { claim(&store, &ids, &terms).await.claimed.len() })
        })
        .collect();
    let mut claimed = 0;
    for claimer in claimers {
        claimed += claimer.await.unwrap();
    }
    assert_eq!(claimed, 60);
    let last: f64 =
        sqlx::query_scalar("SELECT extract(epoch FROM next_slot_at - now())::float8 FROM subscription_paces")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert!(last <= 60.0 && last > 0.0, "60 slots of a second each: {last}");
    let slots: i64 = sqlx::query_scalar("SELECT count(*) FROM notifications WHERE status = 'IN_MEMORY'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(slots, 60);
}

#[testkit::database_test]
async fn what_missed_its_slot_goes_next_and_not_last(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active()
        .requests_per_second(10)
        .make(&pool)
        .await;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 200).await);
    let (mut sent, _) = claim_rated(&store, &made).await;
    // Each time the lane stood still for a while, twice for longer than a slot was ever kept.
    for stood_still in [1.5, 8.0, 1.5, 600.0, 4.0] {
        pass(&pool, stood_still).await;
        let released = release(&store, &pool, noon()).await;
        assert!(released.len() >= 10, "a second's worth at the least");
        pass(&pool, 4.0).await;
        let (claimed, _) = claim_rated(&store, &released).await;
        assert!(
            claimed.len() <= 16,
            "time that has passed is not saved up: {}",
            claimed.len()
        );
        sent.extend(claimed);
    }
    assert!(sent.len() >= 60, "{}", sent.len());
    assert_eq!(sent, made[..sent.len()], "oldest first");
}

#[testkit::database_test]
async fn a_clock_that_is_seconds_off_costs_no_slot(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for offset in [-4, 4] {
        let subscription = SubscriptionRow::active()
            .requests_per_second(10)
            .make(&pool)
            .await;
        let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 60).await);
        // The process that claims is off, the one that releases is not.
        let off = terms(noon() + TimeDelta::seconds(offset));
        let mut sent = claimed_ids(&claim(&store, &made, &off).await);
        for _ in 0..2 {
            pass(&pool, 1.5).await;
            let released = release(&store, &pool, noon()).await;
            let claims = claim(&store, &released, &off).await;
            assert!(claims.claimed.len() >= 10, "{offset} s: {claims:?}");
            let latest = waits(&claims, off.at).pop().unwrap();
            assert!(latest > 0.0, "slots are told by the clock of the process");
            sent.extend(claimed_ids(&claims));
        }
        assert_eq!(sent, made[..sent.len()]);
        clear(&pool).await;
    }
}

#[testkit::database_test]
async fn a_changed_rate_holds_for_what_waits_and_for_what_comes(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active()
        .requests_per_second(10)
        .make(&pool)
        .await;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 250).await);
    let (first, _) = claim_rated(&store, &made).await;
    let set_rate = async |rate| {
        let limits = LimitsChange {
            requests_per_second: Some(Some(rate)),
            ..LimitsChange::default()
        };
        assert!(store.set_limits(subscription, limits, act(noon())).await.unwrap());
        pass(&pool, 60.0).await;
    };
    set_rate(100).await;
    let released = release(&store, &pool, noon()).await;
    let (raised, _) = claim_rated(&store, &released).await;
    assert_eq!(raised, made[first.len()..first.len() + released.len()]);
    assert!(released.len() >= 100, "{}", released.len());
    set_rate(1).await;
    let new = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    assert_eq!(
        claim_rated(&store, &[new.id]).await,
        (vec![], 1),
        "it overtakes nothing"
    );
    let released = release(&store, &pool, noon()).await;
    let (lowered, _) = claim_rated(&store, &released).await;
    assert!(lowered.len() <= 2, "the old rate is over: {}", lowered.len());
}

#[testkit::database_test]
async fn a_retry_gets_a_slot_of_its_own(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().requests_per_second(1).make(&pool).await;
    let made = notifications(&pool, NotificationState::Queued, subscription, 1).await;
    let terms = terms(noon());
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
    let claims = claim(&store, &ids(&made), &terms).await;
    let wait = waits(&claims, terms.at)[0];
    assert!(wait > 0.0 && wait < 1.1, "{wait}");
    assert_eq!(claims.claimed[0].attempts.total, 2);
}

#[testkit::database_test]
async fn a_retry_without_a_slot_soon_waits_in_the_retry_lane(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().requests_per_second(1).make(&pool).await;
    let first = notifications(&pool, NotificationState::Queued, subscription, 9).await;
    let terms = terms(noon());
    claim(&store, &ids(&first), &terms).await;
    let retry = NotificationRow::in_state(NotificationState::Queued, subscription);
    let retry = retry.attempts(1).make(&pool).await;
    assert_eq!(claim(&store, &[retry.id], &terms).await.over_rate, 1);
    let row = row(&pool, retry.id).await;
    assert_eq!(
        (&*row.status, row.attempts, row.reason.as_deref()),
        ("RETRY", 1, Some("RATE"))
    );
    assert_eq!(row.next_attempt_at, Some(terms.at + TimeDelta::seconds(2)));
}

#[testkit::database_test]
async fn time_without_requests_is_not_saved_up(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().requests_per_second(1).make(&pool).await;
    for _ in 0..2 {
        let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 3).await);
        let (claimed, over) = claim_rated(&store, &made).await;
        assert_eq!((claimed, over), (made[..2].to_vec(), 1));
        sqlx::query("DELETE FROM notifications WHERE status = 'SCHEDULED'")
            .execute(&pool)
            .await
            .unwrap();
        release(&store, &pool, noon()).await;
        pass(&pool, 3_600.0).await;
    }
}

#[testkit::database_test]
async fn the_default_rate_is_for_those_without_their_own(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut terms = terms(noon());
    terms.requests_per_second = Some(1);
    for (own, expected) in [(None, 2), (Some(2), 4)] {
        let mut subscription = SubscriptionRow::active();
        if let Some(own) = own {
            subscription = subscription.requests_per_second(own);
        }
        let subscription = subscription.make(&pool).await;
        let made = notifications(&pool, NotificationState::Queued, subscription, 10).await;
        assert_eq!(claim(&store, &ids(&made), &terms).await.claimed.len(), expected);
    }
}

#[testkit::database_test]
async fn slots_that_an_earlier_version_reserved_hours_ahead_hold_nothing_up(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active()
        .requests_per_second(10)
        .make(&pool)
        .await;
    sqlx::query(
        "INSERT INTO subscription_paces (subscription_id, next_slot_at, asked_at, span)
         VALUES ($1, now() + interval '3 hours', now(), interval '0')",
    )
    .bind(subscription)
    .execute(&pool)
    .await
    .unwrap();
    let made = ids(&notifications(&pool, NotificationState::Scheduled, subscription, 5).await);
    let released = release(&store, &pool, noon()).await;
    assert_eq!(claim_rated(&store, &released).await, (made, 0));
}

//! The health of endpoints: what is judged, and that each judgement is carried out and told once.

use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::subscription::{HealthPolicy, SubscriptionState};
use serde_json::{Value, json};
use sqlx::PgPool;
use store::Store;
use store::webhook::HealthChanges;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::scene::act;

const HOUR: u64 = 3_600;
const POLICY: HealthPolicy = HealthPolicy {
    degraded_after: Duration::from_secs(48 * HOUR),
    deactivated_after: Duration::from_secs(120 * HOUR),
    evidence_after: Duration::from_secs(12 * HOUR),
};

fn now() -> DateTime<Utc> {
    SystemClock.now().trunc_subsecs(6)
}

fn judged(degraded: u64, deactivated: u64) -> HealthChanges {
    HealthChanges {
        degraded,
        deactivated,
    }
}

/// Lets an endpoint fail since `since`, the last time at `latest`.
async fn fails(pool: &PgPool, id: Uuid, since: DateTime<Utc>, latest: DateTime<Utc>) {
    sqlx::query("UPDATE subscriptions SET failing_since = $2, last_failure_at = $3 WHERE id = $1")
        .bind(id)
        .bind(since)
        .bind(latest)
        .execute(pool)
        .await
        .unwrap();
}

async fn failing(pool: &PgPool, row: SubscriptionRow, since: DateTime<Utc>) -> Uuid {
    let id = row.make(pool).await;
    fails(pool, id, since, since + TimeDelta::hours(40)).await;
    id
}

async fn state(pool: &PgPool, id: Uuid) -> (String, String, DateTime<Utc>) {
    sqlx::query_as("SELECT state, state_reason, state_changed_at FROM subscriptions WHERE id = $1")
        .bind(id)
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn mails(pool: &PgPool) -> Vec<(String, Value)> {
    sqlx::query_as("SELECT kind, data FROM emails ORDER BY created_at")
        .fetch_all(pool)
        .await
        .unwrap()
}

#[testkit::database_test]
async fn both_boundaries_are_kept_to_the_second_and_told_with_their_times(pool: PgPool) {
    let (store, since) = (Store::from_pool(pool.clone()), now());
    let id = failing(&pool, SubscriptionRow::active(), since).await;
    let second = TimeDelta::seconds(1);
    let (degraded, deactivated) = (since + TimeDelta::hours(48), since + TimeDelta::hours(120));
    for (at, expected) in [
        (degraded - second, judged(0, 0)),
        (degraded, judged(1, 0)),
        (degraded + second, judged(0, 0)),
        (deactivated - second, judged(0, 0)),
        (deactivated, judged(0, 1)),
        (deactivated + second, judged(0, 0)),
    ] {
        assert_eq!(
            store.evaluate_health(&POLICY, at).await.unwrap(),
            expected,
            "{at}"
        );
        // What still waits would take up what follows.
        sqlx::query("UPDATE emails SET status = 'SENT', next_attempt_at = NULL, finished_at = $1 WHERE status = 'PENDING'")
            .bind(at)
            .execute(&pool)
            .await
            .unwrap();
    }
    let (state, reason, changed_at) = state(&pool, id).await;
    assert_eq!(
        (&*state, &*reason, changed_at),
        ("DEACTIVATED", "FAILING", deactivated)
    );
    let mails = mails(&pool).await;
    assert_eq!(mails.len(), 2);
    let time = |value: &Value| value.as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    for ((kind, data), (state, previous)) in mails
        .iter()
        .zip([("DEGRADED", "ACTIVE"), ("DEACTIVATED", "DEGRADED")])
    {
        assert_eq!(kind, "STATE_CHANGED");
        assert_eq!(
            (&data["state"], &data["previous"]),
            (&json!(state), &json!(previous))
        );
        assert_eq!(
            (&data["reason"], &data["resellerId"]),
            (&json!("FAILING"), &json!("acme"))
        );
        assert_eq!(time(&data["failingSince"]), since);
        assert_eq!(time(&data["deactivatedAt"]), deactivated);
    }
}

#[testkit::database_test]
async fn a_subscription_not_looked_at_for_days_is_deactivated_at_once_with_one_mail(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), now());
    failing(&pool, SubscriptionRow::active(), now - TimeDelta::days(30)).await;
    assert_eq!(store.evaluate_health(&POLICY, now).await.unwrap(), judged(0, 1));
    let mails = mails(&pool).await;
    assert_eq!(mails.len(), 1);
    assert_eq!(mails[0].1["previous"], "ACTIVE");
}

#[testkit::database_test]
async fn replicas_that_judge_at_once_tell_each_change_once(pool: PgPool) {
    let now = now();
    let count = 1_201_u64;
    for n in 0..count {
        // Some share their time, so that pages end between equals.
        let since = now - TimeDelta::days(3) - TimeDelta::seconds((n / 700).cast_signed());
        failing(&pool, SubscriptionRow::active(), since).await;
    }
    let judges = (0..3).map(|_| {
        let store = Store::from_pool(pool.clone());
        tokio::spawn(async move { store.evaluate_health(&POLICY, now).await.unwrap() })
    });
    let mut degraded = 0;
    for judge in judges.collect::<Vec<_>>() {
        degraded += judge.await.unwrap().degraded;
    }
    assert_eq!(degraded, count);
    assert_eq!(mails(&pool).await.len() as u64, count);
}

#[testkit::database_test]
async fn what_cannot_or_need_not_fail_is_left_alone(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), now());
    let long_ago = now - TimeDelta::days(30);
    failing(&pool, SubscriptionRow::active().paused(), long_ago).await;
    failing(&pool, SubscriptionRow::active().deleted(), long_ago).await;
    for state in [
        SubscriptionState::PendingVerification,
        SubscriptionState::Deactivated,
    ] {
        failing(&pool, SubscriptionRow::in_state(state), long_ago).await;
    }
    let silent = SubscriptionRow::active().make(&pool).await;
    fails(
        &pool,
        silent,
        long_ago,
        long_ago + TimeDelta::hours(12) - TimeDelta::seconds(1),
    )
    .await;
    SubscriptionRow::active().make(&pool).await;
    assert_eq!(store.evaluate_health(&POLICY, now).await.unwrap(), judged(0, 0));
    assert_eq!(mails(&pool).await, []);
}

#[testkit::database_test]
async fn a_subscription_that_goes_on_after_a_pause_is_judged_from_then(pool: PgPool) {
    let (store, since) = (Store::from_pool(pool.clone()), now());
    let id = failing(&pool, SubscriptionRow::active(), since).await;
    let pause = async |paused, at| {
        let view = store
            .pause_subscription("acme", id, paused, act(at))
            .await
            .unwrap();
        view.unwrap().failing_since
    };
    let paused_at = since + TimeDelta::days(1);
    assert_eq!(pause(true, paused_at).await, Some(since));
    assert_eq!(pause(true, paused_at + TimeDelta::hours(1)).await, Some(since));
    let resumed_at = since + TimeDelta::days(6);
    assert_eq!(
        pause(false, resumed_at).await,
        Some(since),
        "it is known since when it fails"
    );
    // What goes on already is not spared by going on again.
    let later = resumed_at + TimeDelta::days(6);
    assert_eq!(pause(false, later).await, Some(since));
    for at in [resumed_at, later] {
        let judged_at = store.evaluate_health(&POLICY, at).await.unwrap();
        assert_eq!(judged_at, judged(0, 0), "nothing was tried since then: {at}");
    }
    fails(&pool, id, since, resumed_at + TimeDelta::hours(12)).await;
    let degraded = resumed_at + TimeDelta::hours(48);
    let second = TimeDelta::seconds(1);
    assert_eq!(
        store.evaluate_health(&POLICY, degraded - second).await.unwrap(),
        judged(0, 0)
    );
    assert_eq!(
        store.evaluate_health(&POLICY, degraded).await.unwrap(),
        judged(1, 0)
    );
}

#[testkit::database_test]
async fn going_on_makes_no_endpoint_fail_and_none_healthy(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), now());
    let well = SubscriptionRow::active().paused().make(&pool).await;
    let degraded = SubscriptionRow::in_state(SubscriptionState::Degraded).paused();
    let since = now - TimeDelta::days(3);
    let degraded = failing(&pool, degraded, since).await;
    for (id, state, failing_since) in [(well, "ACTIVE", None), (degraded, "DEGRADED", Some(since))] {
        let view = store
            .pause_subscription("acme", id, false, act(now))
            .await
            .unwrap()
            .unwrap();
        assert_eq!((view.state.as_str(), view.failing_since), (state, failing_since));
    }
}

#[testkit::database_test]
async fn what_heals_while_it_is_judged_stays_healed(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), now());
    let id = failing(&pool, SubscriptionRow::active(), now - TimeDelta::days(3)).await;
    let mut healing = pool.begin().await.unwrap();
    sqlx::query("UPDATE subscriptions SET failing_since = NULL WHERE id = $1")
        .bind(id)
        .execute(&mut *healing)
        .await
        .unwrap();
    let judging = tokio::spawn(async move { store.evaluate_health(&POLICY, now).await.unwrap() });
    crate::scene::until_blocked(&pool, 1).await;
    healing.commit().await.unwrap();
    assert_eq!(judging.await.unwrap(), judged(0, 0));
    assert_eq!(state(&pool, id).await.0, "ACTIVE");
    assert_eq!(mails(&pool).await, []);
}

#[testkit::database_test]
async fn subscriptions_are_counted_by_state_without_the_deleted_ones(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for row in [
        SubscriptionRow::active(),
        SubscriptionRow::active().paused(),
        SubscriptionRow::active().deleted(),
        SubscriptionRow::in_state(SubscriptionState::Degraded),
    ] {
        row.make(&pool).await;
    }
    let counts = store.count_subscriptions().await.unwrap();
    let [pending, active, degraded, deactivated] = SubscriptionState::ALL;
    assert_eq!(
        counts,
        [(pending, 0), (active, 2), (degraded, 1), (deactivated, 0)]
    );
}

//! When pauses begin and end, what is recorded of it, and what the time between them is not held against.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::subscription::{HealthPolicy, SubscriptionState};
use sqlx::PgPool;
use store::webhook::HealthChanges;
use store::{Lane, Pausable, PauseChange, Store};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use super::scene::{act, audited, by_reseller, now, pause, resume, suspended};

const HOUR: u64 = 3_600;
const POLICY: HealthPolicy = HealthPolicy {
    degraded_after: Duration::from_secs(48 * HOUR),
    deactivated_after: Duration::from_secs(120 * HOUR),
    evidence_after: Duration::from_secs(12 * HOUR),
};

#[testkit::database_test]
async fn pausing_twice_keeps_the_first_and_only_changes_are_recorded(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    for what in [
        Pausable::Lane(Lane::Push),
        Pausable::Subscription(subscription),
        Pausable::Reseller("acme".to_owned()),
    ] {
        assert_eq!(resume(&store, &what).await, PauseChange::Unchanged, "{what:?}");
        let first = act("the first", now());
        assert_eq!(store.pause(&what, first).await.unwrap(), PauseChange::Changed);
        let second = act("the second", now());
        assert_eq!(store.pause(&what, second).await.unwrap(), PauseChange::Unchanged);
        let pauses = store.list_pauses().await.unwrap();
        assert_eq!(pauses.len(), 1);
        assert_eq!(
            (pauses[0].scope.as_str(), pauses[0].key.clone()),
            (what.scope(), what.key())
        );
        assert_eq!(
            (pauses[0].note.as_str(), pauses[0].paused_at),
            ("the first", first.at)
        );
        assert_eq!(resume(&store, &what).await, PauseChange::Changed);
        assert_eq!(resume(&store, &what).await, PauseChange::Unchanged);
        assert_eq!(store.list_pauses().await.unwrap(), []);
    }
    let actions: Vec<_> = audited(&pool)
        .await
        .into_iter()
        .map(|(action, _)| action)
        .collect();
    let mut expected = Vec::new();
    for scope in ["lane", "subscription", "reseller"] {
        expected.extend([format!("{scope}.pause"), format!("{scope}.resume")]);
    }
    assert_eq!(actions, expected);
}

#[testkit::database_test]
async fn pauses_that_are_over_stay_known_with_who_made_them(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let lane = Pausable::Lane(Lane::Reseller);
    let all = [lane.clone(), Pausable::Subscription(subscription)];
    let start = now() - TimeDelta::minutes(10);
    let at = |minutes| start + TimeDelta::minutes(minutes);
    for (what, minute, until) in [(&all[0], 1, Some(2)), (&all[1], 3, Some(4)), (&all[0], 5, None)] {
        store.pause(what, act("because", at(minute))).await.unwrap();
        if let Some(until) = until {
            store.resume(what, act("well again", at(until))).await.unwrap();
        }
    }
    // Its reseller's own pause is in the states of the subscription.
    for paused in [true, false] {
        store
            .pause_subscription("acme", subscription, paused, by_reseller())
            .await
            .unwrap();
    }
    let told = async |what: &[Pausable], since, ended_at| {
        let periods = store.pauses_since(what, since, ended_at).await.unwrap();
        let told = periods.into_iter().map(|period| {
            assert_eq!((&*period.paused_by, &*period.note), ("Anna (1)", "because"));
            (period.scope, period.paused_at, period.resumed_at)
        });
        told.collect::<Vec<_>>()
    };
    let period = |scope: &str, from, until: Option<i64>| (scope.to_owned(), at(from), until.map(at));
    let whole = [
        period("lane", 1, Some(2)),
        period("subscription", 3, Some(4)),
        period("lane", 5, None),
    ];
    assert_eq!(told(&all, start, None).await, whole);
    assert_eq!(told(&all, at(3), None).await, whole[1..]);
    assert_eq!(told(&all, start, Some(at(3))).await, whole[..1]);
    assert_eq!(told(&[lane], at(3), None).await, whole[2..]);
    assert_eq!(told(&[Pausable::Lane(Lane::Push)], start, None).await, []);
}

#[testkit::database_test]
async fn who_paused_something_is_found_around_that_time_whatever_was_done_to_it_since(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let what = Pausable::Subscription(subscription);
    let start = now() - TimeDelta::minutes(10);
    let before = act("too early", start - TimeDelta::seconds(2));
    store.pause(&what, before).await.unwrap();
    for act in [
        act("the end of that", start - TimeDelta::seconds(2)),
        act("to be kept", start),
    ] {
        assert_eq!(store.resume(&what, act).await.unwrap(), PauseChange::Changed);
        assert_eq!(store.pause(&what, act).await.unwrap(), PauseChange::Changed);
    }
    for toggle in 0..50 {
        let paused = toggle % 2 == 0;
        let toggled = store.pause_subscription("acme", subscription, paused, by_reseller());
        assert!(toggled.await.unwrap().is_some());
    }
    let subjects = [format!("subscription/{subscription}"), "reseller/acme".to_owned()];
    let around = async |at| {
        // Twice the same time finds nothing twice.
        let twice = [at, at];
        let acts = store.acts_around(&twice, TimeDelta::seconds(1), &subjects, &["subscription.pause"]);
        let acts = acts.await.unwrap().into_iter();
        acts.map(|act| (act.actor, act.note)).collect::<Vec<_>>()
    };
    let kept = ("Anna (1)".to_owned(), Some("to be kept".to_owned()));
    assert_eq!(around(start).await, std::slice::from_ref(&kept));
    assert_eq!(around(start + TimeDelta::seconds(1)).await, [kept]);
    assert_eq!(around(start + TimeDelta::minutes(1)).await, []);
    assert_eq!(
        store
            .acts_around(&[], TimeDelta::seconds(1), &subjects, &[])
            .await
            .unwrap(),
        []
    );
}

#[testkit::database_test]
async fn what_is_unknown_is_not_paused(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let deleted = SubscriptionRow::active().deleted().make(&pool).await;
    for what in [
        Pausable::Subscription(Uuid::now_v7()),
        Pausable::Subscription(deleted),
        Pausable::Reseller("acme".to_owned()),
    ] {
        assert_eq!(pause(&store, &what).await, PauseChange::Unknown, "{what:?}");
        assert_eq!(resume(&store, &what).await, PauseChange::Unknown, "{what:?}");
    }
    assert_eq!(audited(&pool).await, []);
}

#[testkit::database_test]
async fn a_long_pause_deactivates_no_subscription(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let start = now() - TimeDelta::days(30);
    let id = SubscriptionRow::active().make(&pool).await;
    for what in [
        Pausable::Lane(Lane::Reseller),
        Pausable::Subscription(id),
        Pausable::Reseller("acme".to_owned()),
    ] {
        sqlx::query("UPDATE subscriptions SET failing_since = $1, last_failure_at = $2")
            .bind(start)
            .bind(start + TimeDelta::hours(40))
            .execute(&pool)
            .await
            .unwrap();
        let paused_at = start + TimeDelta::hours(41);
        store.pause(&what, act("because", paused_at)).await.unwrap();
        let (long_after, none) = (start + TimeDelta::days(20), HealthChanges::default());
        assert_eq!(
            store.evaluate_health(&POLICY, long_after).await.unwrap(),
            none,
            "{what:?}"
        );
        store.resume(&what, act("well again", long_after)).await.unwrap();
        let soon = long_after + TimeDelta::hours(47);
        assert_eq!(
            store.evaluate_health(&POLICY, soon).await.unwrap(),
            none,
            "{what:?}"
        );
    }
    // It is not forgotten either: what goes on failing is judged from the end of the pause.
    let end = start + TimeDelta::days(20);
    sqlx::query("UPDATE subscriptions SET last_failure_at = $1")
        .bind(end + TimeDelta::hours(40))
        .execute(&pool)
        .await
        .unwrap();
    let judged = store
        .evaluate_health(&POLICY, end + TimeDelta::hours(48))
        .await
        .unwrap();
    assert_eq!(judged.degraded, 1);
    let state: String = sqlx::query_scalar("SELECT state FROM subscriptions")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(state, SubscriptionState::Degraded.as_str());
}

#[testkit::database_test]
async fn a_deleted_subscription_takes_its_pause_along(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let id = SubscriptionRow::active().make(&pool).await;
    pause(&store, &Pausable::Subscription(id)).await;
    store
        .delete_subscription("acme", id, by_reseller())
        .await
        .unwrap();
    assert_eq!(store.list_pauses().await.unwrap(), []);
    assert_eq!(store.count_pauses().await.unwrap(), Default::default());
}

#[testkit::database_test]
async fn a_pause_ends_by_itself_when_its_time_is_over_and_is_ended_once(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let end = now() + TimeDelta::hours(2);
    let all = [
        Pausable::Lane(Lane::Push),
        Pausable::Subscription(subscription),
        Pausable::Reseller("acme".to_owned()),
    ];
    for what in &all {
        let finer = Some(end + TimeDelta::nanoseconds(7));
        let pausing = store.pause_until(what, finer, act("for two hours", now()));
        assert_eq!(pausing.await.unwrap(), PauseChange::Changed);
        let later = Some(end + TimeDelta::hours(1));
        let again = store.pause_until(what, later, act("longer", now()));
        assert_eq!(again.await.unwrap(), PauseChange::Unchanged);
    }
    pause(&store, &Pausable::Lane(Lane::Reseller)).await;
    let untils: Vec<_> = store.list_pauses().await.unwrap();
    let untils = untils.into_iter().filter(|pause| pause.until == Some(end));
    assert_eq!(untils.count(), 3, "the first end stays");
    let recorded: Vec<String> =
        sqlx::query_scalar("SELECT details->>'until' FROM audit_log WHERE details->>'until' IS NOT NULL")
            .fetch_all(&pool)
            .await
            .unwrap();
    let recorded: Vec<DateTime<Utc>> = recorded.iter().map(|until| until.parse().unwrap()).collect();
    assert_eq!(recorded, [end; 3], "as the pauses have it");
    assert_eq!(store.end_pauses(end - TimeDelta::seconds(1)).await.unwrap(), 0);

    let (one, other) = tokio::join!(store.end_pauses(end), store.end_pauses(end));
    assert_eq!(one.unwrap() + other.unwrap(), 3);
    let left = store.list_pauses().await.unwrap();
    let [left] = &left[..] else { panic!("{left:?}") };
    assert_eq!((left.key.as_str(), left.until), ("reseller", None));
    assert!(!store.lane_is_paused(Lane::Push).await.unwrap());
    assert!(!suspended(&pool, subscription).await);
    let ends: Vec<(String, String)> =
        sqlx::query_as("SELECT action, actor FROM audit_log WHERE action LIKE '%.resume' ORDER BY action")
            .fetch_all(&pool)
            .await
            .unwrap();
    let ended = |action: &str| (action.to_owned(), "postrider (end of the pause)".to_owned());
    assert_eq!(
        ends,
        ["lane.resume", "reseller.resume", "subscription.resume"].map(ended)
    );
}

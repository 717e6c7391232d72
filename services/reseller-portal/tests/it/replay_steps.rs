//! The steps of a replay: what becomes due, how fast, and that nothing is lost or doubled.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::notification::{NotificationId, NotificationState};
use domain::push::PushId;
use domain::subscription::{ReplayStatus, SubscriptionState};
use serde_json::json;
use sqlx::{PgExecutor, PgPool};
use store::webhook::{NewReplay, ReplayRequested, ReplayView, SETTLED_AFTER};
use testkit::eventually;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::portal::Portal;

/// How long a replay leaves an event alone.
fn settling() -> TimeDelta {
    TimeDelta::from_std(SETTLED_AFTER).unwrap()
}

/// Stores an event that was fanned out to no subscription.
async fn missed(portal: &Portal, reseller: &str, event_type: &str, age: TimeDelta) -> Uuid {
    missed_by(portal, &portal.pool, (reseller, event_type), age).await
}

/// The same as part of what `executor` does.
async fn missed_by(
    portal: &Portal,
    executor: impl PgExecutor<'_>,
    (reseller, event_type): (&str, &str),
    age: TimeDelta,
) -> Uuid {
    let (id, at) = (PushId::at(portal.now() - age).uuid(), portal.now() - age);
    sqlx::query(
        "INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at)
         VALUES ($1, $1::text, $2, $3, '{\"id\":1}', $4, $4)",
    )
    .bind(id)
    .bind(reseller)
    .bind(event_type)
    .bind(at)
    .execute(executor)
    .await
    .unwrap();
    id
}

async fn replay(portal: &Portal, subscription: Uuid, per_second: u32) -> Uuid {
    let now = portal.now();
    let new = NewReplay {
        id: PushId::at(now).uuid(),
        subscription,
        since: now - TimeDelta::days(1),
        until: now,
        per_second,
        missed: store::webhook::Missed::default(),
        created_at: now,
    };
    let requested = portal
        .store
        .insert_replay("acme", &new, testkit::act_of_a_reseller(now))
        .await
        .unwrap();
    assert_eq!(requested, ReplayRequested::Done);
    new.id
}

async fn view(portal: &Portal, subscription: Uuid, id: Uuid) -> ReplayView {
    portal
        .store
        .list_replays(subscription, Some(id), None, None, 1)
        .await
        .unwrap()
        .remove(0)
}

/// Goes on until the end, at the present of the portal's clock; tells what was examined and replayed by then. What happens in the database
/// at that moment, such as the portal's own sign of life, may put the end off.
async fn ended(portal: &Portal, subscription: Uuid, id: Uuid) -> (u64, u64) {
    let (mut examined, mut replayed) = (0, 0);
    eventually("the end of the replay", async || {
        let step = portal.store.advance_replay(id, portal.now()).await.unwrap();
        examined += step.examined;
        replayed += step.replayed;
        let status = view(portal, subscription, id).await.status;
        (status == ReplayStatus::Completed).then_some(())
    })
    .await;
    (examined, replayed)
}

async fn statuses(pool: &PgPool) -> BTreeMap<String, i64> {
    let rows: Vec<(String, i64)> = sqlx::query_as("SELECT status, count(*) FROM notifications GROUP BY 1")
        .fetch_all(pool)
        .await
        .unwrap();
    rows.into_iter().collect()
}

#[testkit::test]
async fn what_was_missed_becomes_due_and_everything_else_is_left_alone(portal: Portal) {
    let id = SubscriptionRow::active()
        .event_types(&["domain.*"])
        .make(&portal.pool)
        .await;
    let hour = TimeDelta::hours(1);
    let fresh = missed(&portal, "acme", "domain.created", hour).await;
    missed(&portal, "acme", "contact.updated", hour).await;
    missed(&portal, "other", "domain.created", hour).await;
    missed(&portal, "acme", "domain.created", TimeDelta::hours(25)).await;
    let mut kept = Vec::new();
    for state in NotificationState::ALL {
        let row = NotificationRow::in_state(state, id).created_at(portal.now() - hour);
        let made = row.make(&portal.pool).await;
        if !matches!(state, NotificationState::Failed | NotificationState::GivenUp) {
            kept.push((made.id.uuid(), text(&portal.pool, made.id.uuid()).await));
        }
    }
    portal
        .done("POST", &format!("/subscriptions/{id}/test"), 202)
        .await;
    let replay = replay(&portal, id, 100).await;
    portal.clock.advance(settling());
    assert_eq!(ended(&portal, id, replay).await, (11, 3));
    for (id, before) in kept {
        assert_eq!(text(&portal.pool, id).await, before);
    }
    let new: (String, i32, Option<String>) =
        sqlx::query_as("SELECT status, payload_bytes, charged_on::text FROM notifications WHERE id = $1")
            .bind(NotificationId::of(fresh, id).uuid())
            .fetch_one(&portal.pool)
            .await
            .unwrap();
    assert_eq!(
        new,
        ("PENDING".to_owned(), 8, None),
        "it takes its place in the quota when it is sent"
    );
    let again: Vec<(i32, i32)> = sqlx::query_as(
        "SELECT attempts, resent_after FROM notifications WHERE reason = 'REPLAYED' AND status = 'RETRY'
         AND next_attempt_at = $1 AND finished_at IS NULL",
    )
    .bind(portal.now())
    .fetch_all(&portal.pool)
    .await
    .unwrap();
    assert_eq!(again, [(1, 1), (1, 1)]);
    let letters: Vec<(String, String)> = sqlx::query_as("SELECT state, resolved_by FROM dead_letters")
        .fetch_all(&portal.pool)
        .await
        .unwrap();
    let resolved = ("REPLAYED".to_owned(), "reseller acme".to_owned());
    assert_eq!(
        letters,
        [resolved.clone(), resolved],
        "no operator is called for them any more"
    );
    let seen = portal.see(&format!("/subscriptions/{id}/replays/{replay}")).await;
    assert_eq!(
        (&seen["status"], &seen["replayed"], &seen["cancelled"]),
        (&json!("COMPLETED"), &json!(3), &json!(1))
    );
    assert_eq!(portal.store.running_replays().await.unwrap(), [] as [Uuid; 0]);
}

async fn text(pool: &PgPool, id: Uuid) -> String {
    sqlx::query_scalar("SELECT n::text FROM notifications n WHERE n.id = $1")
        .bind(id)
        .fetch_one(pool)
        .await
        .unwrap()
}

#[testkit::test]
async fn it_keeps_its_rate_by_the_clock_that_it_is_given(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    for n in 0..25 {
        missed(&portal, "acme", "domain.created", TimeDelta::minutes(60 - n)).await;
    }
    let replay = replay(&portal, id, 10).await;
    let mut replayed = Vec::new();
    for millis in [10_000, 0, 500, 0, 100, 5_000, 900] {
        portal.clock.advance(TimeDelta::milliseconds(millis));
        let step = portal.store.advance_replay(replay, portal.now()).await.unwrap();
        replayed.push(step.replayed);
    }
    assert_eq!(
        replayed,
        [10, 0, 5, 0, 1, 9, 0],
        "a pause is made up for by a second's worth at most"
    );
    ended(&portal, id, replay).await;
    assert_eq!(
        statuses(&portal.pool).await,
        BTreeMap::from([("PENDING".to_owned(), 25)])
    );
}

/// More than one step has to pass over them, and that must not take the time that replaying them would.
#[testkit::test]
async fn what_was_delivered_is_passed_over_without_using_the_rate(portal: Portal) {
    let id = SubscriptionRow::active()
        .event_types(&["contact.updated"])
        .make(&portal.pool)
        .await;
    sqlx::query(
        "INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at)
         SELECT overlay(gen_random_uuid()::text PLACING left($1::text, 13) FROM 1 FOR 13)::uuid, n::text, 'acme',
                'domain.created', '{}', $2, $2
         FROM generate_series(1, 2500) AS n",
    )
    .bind(PushId::at(portal.now() - TimeDelta::hours(1)).uuid())
    .bind(portal.now() - TimeDelta::hours(1))
    .execute(&portal.pool)
    .await
    .unwrap();
    let last = missed(&portal, "acme", "contact.updated", TimeDelta::minutes(30)).await;
    let replay = replay(&portal, id, 1).await;
    portal.clock.advance(settling());
    let mut steps = Vec::new();
    loop {
        let step = portal.store.advance_replay(replay, portal.now()).await.unwrap();
        steps.push((step.examined, step.replayed));
        if !step.more {
            break;
        }
    }
    assert_eq!(steps, [(1000, 0), (1000, 0), (501, 1)]);
    let made: Uuid = sqlx::query_scalar("SELECT event FROM notifications")
        .fetch_one(&portal.pool)
        .await
        .unwrap();
    assert_eq!(made, last);
}

#[testkit::test]
async fn many_at_once_do_it_once(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    for n in 0..40 {
        missed(&portal, "acme", "domain.created", TimeDelta::minutes(60 - n)).await;
    }
    let replay = replay(&portal, id, 20).await;
    portal.clock.advance(settling());
    for _ in 0..3 {
        let steps = (0..8).map(|_| portal.store.advance_replay(replay, portal.now()));
        let replayed: u64 = futures::future::join_all(steps)
            .await
            .into_iter()
            .map(|step| step.unwrap().replayed)
            .sum();
        assert!(replayed <= 20, "{replayed}");
        portal.clock.advance(TimeDelta::seconds(1));
    }
    // While others are at it as well, the end is left to a later step.
    ended(&portal, id, replay).await;
    let done = view(&portal, id, replay).await;
    assert_eq!(
        (done.status, done.examined, done.replayed),
        (ReplayStatus::Completed, 40, 40)
    );
    assert_eq!(
        statuses(&portal.pool).await,
        BTreeMap::from([("PENDING".to_owned(), 40)])
    );
}

/// The event has its identifier already, but the transaction that stores it has not ended.
#[testkit::test]
async fn an_event_that_appears_late_is_not_skipped(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let late = portal.now() - TimeDelta::seconds(5);
    missed(&portal, "acme", "domain.created", TimeDelta::seconds(1)).await;
    let replay = replay(&portal, id, 100).await;
    portal.clock.advance(TimeDelta::seconds(2));
    portal.store.advance_replay(replay, portal.now()).await.unwrap();
    assert_eq!(view(&portal, id, replay).await.status, ReplayStatus::Running);
    missed(&portal, "acme", "domain.created", portal.now() - late).await;
    portal.clock.advance(settling() - TimeDelta::seconds(2));
    ended(&portal, id, replay).await;
    let done = view(&portal, id, replay).await;
    assert_eq!((done.status, done.replayed), (ReplayStatus::Completed, 2));
}

/// What stores an event may have begun when the subscription got nothing, and taken its time since.
#[testkit::test]
async fn an_event_that_is_being_stored_is_not_skipped_however_long_that_takes(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    missed(&portal, "acme", "domain.created", TimeDelta::hours(1)).await;
    let mut storing = portal.pool.begin().await.unwrap();
    let (of, age) = (("acme", "domain.created"), TimeDelta::seconds(1));
    missed_by(&portal, &mut *storing, of, age).await;
    let replay = replay(&portal, id, 100).await;
    portal.clock.advance(TimeDelta::minutes(10));
    portal.store.advance_replay(replay, portal.now()).await.unwrap();
    let seen = view(&portal, id, replay).await;
    assert_eq!((seen.status, seen.replayed), (ReplayStatus::Running, 1));
    storing.commit().await.unwrap();
    ended(&portal, id, replay).await;
    let done = view(&portal, id, replay).await;
    assert_eq!((done.status, done.replayed), (ReplayStatus::Completed, 2));
}

#[testkit::test]
async fn it_waits_while_its_subscription_gets_nothing(portal: Portal) {
    missed(&portal, "acme", "domain.created", TimeDelta::hours(1)).await;
    let off = SubscriptionRow::in_state(SubscriptionState::Deactivated)
        .make(&portal.pool)
        .await;
    let paused = SubscriptionRow::active().paused().make(&portal.pool).await;
    let mut replays = Vec::new();
    for id in [off, paused] {
        replays.push(replay(&portal, id, 100).await);
    }
    portal.clock.advance(settling());
    assert_eq!(portal.store.running_replays().await.unwrap(), [] as [Uuid; 0]);
    for replay in &replays {
        let step = portal.store.advance_replay(*replay, portal.now()).await.unwrap();
        assert_eq!(step.examined, 0);
    }
    portal
        .done("POST", &format!("/subscriptions/{off}/activate"), 200)
        .await;
    portal
        .done("POST", &format!("/subscriptions/{paused}/resume"), 200)
        .await;
    assert_eq!(portal.store.running_replays().await.unwrap().len(), 2);
    for replay in &replays {
        let step = portal.store.advance_replay(*replay, portal.now()).await.unwrap();
        assert_eq!(step.replayed, 1);
    }
}

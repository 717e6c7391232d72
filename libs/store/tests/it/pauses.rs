//! Pauses by operators: what they stop and what they leave alone, and that none is overtaken by a claim.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::key::KeyDigest;
use domain::notification::{NotificationState, RetryPlan};
use domain::push::PushState;
use domain::reason::PushReason;
use domain::subscription::{HealthPolicy, HeldBack, PausedBy, SubscriptionRequest, SubscriptionState};
use sqlx::PgPool;
use store::webhook::{Addresses, HealthChanges, NewSecret, NewSubscription, Subscribed};
use store::{Act, Lane, Pausable, PauseChange, Store};
use testkit::eventually;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{claim as claim_notifications, notifications, terms};
use crate::scene::{claim, ids, lead, pushes};

const HOUR: u64 = 3_600;
const POLICY: HealthPolicy = HealthPolicy {
    degraded_after: Duration::from_secs(48 * HOUR),
    deactivated_after: Duration::from_secs(120 * HOUR),
    evidence_after: Duration::from_secs(12 * HOUR),
};

fn now() -> DateTime<Utc> {
    SystemClock.now().trunc_subsecs(6)
}

fn act(note: &'static str, at: DateTime<Utc>) -> Act<'static> {
    Act {
        by: "Anna (1)",
        note: Some(note),
        at,
    }
}

fn by_reseller() -> Act<'static> {
    crate::scene::act(now())
}

async fn pause(store: &Store, what: &Pausable) -> PauseChange {
    store.pause(what, act("because", now())).await.unwrap()
}

async fn resume(store: &Store, what: &Pausable) -> PauseChange {
    store.resume(what, act("well again", now())).await.unwrap()
}

#[testkit::database_test]
async fn a_pause_that_waits_for_a_slow_claim_holds_up_no_other_claim_and_gives_up(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = notifications(&pool, NotificationState::Queued, subscription, 1).await;
    let mut slow = pool.begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock_shared(hashtextextended('postrider.lane/reseller', 0))")
        .execute(&mut *slow)
        .await
        .unwrap();
    let pausing = {
        let store = store.clone();
        tokio::spawn(async move {
            let what = Pausable::Subscription(subscription);
            store.pause(&what, act("because", now())).await
        })
    };
    eventually("the pause to wait", async || {
        let waits: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)",
        )
        .fetch_one(&pool)
        .await
        .ok()?;
        waits.then_some(())
    })
    .await;
    let (ids, terms) = ([made[0].id], terms(now()));
    let claims = store.claim_notifications(&ids, &terms);
    let claims = store::within(testkit::PATIENCE, claims).await.unwrap();
    assert_eq!(claims.claimed.len(), 1);
    let given_up = pausing.await.unwrap();
    assert!(
        matches!(
            given_up,
            Err(store::Error::ClaimsUnderWay {
                lane: Lane::Reseller,
                ..
            })
        ),
        "{given_up:?}"
    );
    assert!(!suspended(&pool, subscription).await);
    slow.rollback().await.unwrap();
    assert_eq!(
        pause(&store, &Pausable::Subscription(subscription)).await,
        PauseChange::Changed
    );
}

async fn suspended(pool: &PgPool, id: Uuid) -> bool {
    sqlx::query_scalar("SELECT suspended FROM subscriptions WHERE id = $1")
        .bind(id)
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn audited(pool: &PgPool) -> Vec<(String, String)> {
    sqlx::query_as("SELECT action, subject FROM audit_log ORDER BY id")
        .fetch_all(pool)
        .await
        .unwrap()
}

#[testkit::database_test]
async fn a_paused_push_lane_is_not_claimed_until_it_goes_on(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let queued = ids(&pushes(&pool, PushState::Queued, 2).await);
    let leader = lead(&store).await;
    let lane = Pausable::Lane(Lane::Push);
    assert_eq!(pause(&store, &lane).await, PauseChange::Changed);
    assert_eq!(store.claim_pushes(&queued, claim(&leader)).await.unwrap(), []);
    assert!(store.lane_is_paused(Lane::Push).await.unwrap());
    assert!(!store.lane_is_paused(Lane::Reseller).await.unwrap());
    assert_eq!(resume(&store, &lane).await, PauseChange::Changed);
    assert_eq!(
        store.claim_pushes(&queued, claim(&leader)).await.unwrap().len(),
        2
    );
}

#[testkit::database_test]
async fn a_paused_reseller_lane_leaves_every_notification_as_it_is(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = [
        notifications(&pool, NotificationState::Queued, subscription, 1).await,
        notifications(&pool, NotificationState::Pending, subscription, 1).await,
    ]
    .concat();
    let made: Vec<_> = made.iter().map(|one| one.id).collect();
    let lane = Pausable::Lane(Lane::Reseller);
    pause(&store, &lane).await;
    let before = crate::reseller::scene::everything(&pool).await;
    let claims = claim_notifications(&store, &made, &terms(now())).await;
    assert_eq!(claims, Default::default());
    assert_eq!(crate::reseller::scene::everything(&pool).await, before);
    resume(&store, &lane).await;
    let claims = claim_notifications(&store, &made, &terms(now())).await;
    assert_eq!(claims.claimed.len(), 2);
}

#[testkit::database_test]
async fn a_pause_waits_for_claims_under_way_and_older_claims_begin_again(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut claiming = pool.begin().await.unwrap();
    let enter = "SELECT enter_lane('push', 0)";
    let open: bool = sqlx::query_scalar(enter).fetch_one(&mut *claiming).await.unwrap();
    assert!(open);
    let pausing = tokio::spawn({
        let store = store.clone();
        async move { pause(&store, &Pausable::Lane(Lane::Push)).await }
    });
    eventually("the pause to wait for the claim", async || {
        let waits: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                            WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database())",
        )
        .fetch_one(&pool)
        .await
        .ok()?;
        waits.then_some(())
    })
    .await;
    assert!(!pausing.is_finished());
    claiming.commit().await.unwrap();
    assert_eq!(pausing.await.unwrap(), PauseChange::Changed);
    // As a claim whose snapshot is from before the pause would ask.
    let late = sqlx::query_scalar::<_, bool>(enter).fetch_one(&pool).await;
    let state = late
        .unwrap_err()
        .into_database_error()
        .unwrap()
        .code()
        .unwrap()
        .into_owned();
    assert_eq!(state, "40001", "the same claim may be made once more");
    let open: bool = sqlx::query_scalar("SELECT enter_lane('push', 1)")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert!(!open);
}

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

/// A subscription as the portal makes one.
async fn subscribe(store: &Store, reseller: &str) -> Uuid {
    let new = NewSubscription {
        id: Uuid::now_v7(),
        reseller: reseller.to_owned(),
        request: SubscriptionRequest {
            description: String::new(),
            url: "https://example.org/hooks".to_owned(),
            event_types: vec![domain::subscription::EventFilter::parse("*").unwrap()],
            email: "ops@example.org".to_owned(),
            timeout_millis: None,
            resend_after_outage: None,
            retry_plan: RetryPlan::Short,
            retry_client_errors: false,
            verify_later: false,
        },
        secret: NewSecret {
            id: Uuid::now_v7(),
            sealed: KeyDigest::of("any bytes").as_bytes().to_vec(),
        },
        created_at: now(),
        addresses: Addresses::Trusted,
    };
    let subscribed = store.insert_subscription(&new, 10, by_reseller()).await;
    assert_eq!(subscribed.unwrap(), Subscribed::Done);
    new.id
}

#[testkit::database_test]
async fn a_paused_reseller_is_held_with_what_it_subscribes_meanwhile(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let (one, foreign) = (
        SubscriptionRow::active().make(&pool).await,
        SubscriptionRow::active().reseller("globex").make(&pool).await,
    );
    let acme = Pausable::Reseller("acme".to_owned());
    pause(&store, &acme).await;
    let new = subscribe(&store, "acme").await;
    assert!(suspended(&pool, one).await && suspended(&pool, new).await);
    assert!(!suspended(&pool, foreign).await);
    let made = notifications(&pool, NotificationState::Queued, one, 1).await;
    let claims = claim_notifications(&store, &[made[0].id], &terms(now())).await;
    assert_eq!((claims.claimed.len(), claims.held), (0, 1));
    resume(&store, &acme).await;
    assert!(!suspended(&pool, one).await && !suspended(&pool, new).await);
}

#[testkit::database_test]
async fn whichever_pause_came_first_each_has_to_end(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let id = SubscriptionRow::active().make(&pool).await;
    let (itself, acme) = (Pausable::Subscription(id), Pausable::Reseller("acme".to_owned()));
    for (first, second) in [(&itself, &acme), (&acme, &itself)] {
        pause(&store, first).await;
        pause(&store, second).await;
        assert_eq!(resume(&store, first).await, PauseChange::Changed);
        assert!(suspended(&pool, id).await, "{second:?} stands");
        assert_eq!(resume(&store, second).await, PauseChange::Changed);
        assert!(!suspended(&pool, id).await);
    }
    pause(&store, &itself).await;
    for paused in [true, false] {
        let view = store
            .pause_subscription("acme", id, paused, by_reseller())
            .await
            .unwrap()
            .unwrap();
        assert_eq!((view.paused_at.is_some(), view.held_at.is_some()), (paused, true));
    }
    assert!(
        suspended(&pool, id).await,
        "its reseller does not lift what an operator has paused"
    );
    assert_eq!(store.pauses_by_resellers(10).await.unwrap(), []);
    store
        .pause_subscription("acme", id, true, by_reseller())
        .await
        .unwrap();
    let own = store.pauses_by_resellers(10).await.unwrap();
    let [own] = &own[..] else { panic!("{own:?}") };
    assert_eq!((own.key.clone(), own.by_reseller), (id.to_string(), true));
    assert_eq!(own.paused_by, "reseller acme");
    resume(&store, &itself).await;
    assert!(suspended(&pool, id).await, "nor the other way round");
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
async fn what_is_cancelled_says_so_and_is_recorded(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Scheduled).make(&pool).await;
    let at = now();
    let cancelled = store.cancel_push(push.id, act("a test push", at)).await.unwrap();
    assert_eq!(
        cancelled,
        store::Cancellation::Done(domain::push::PushStatus::Scheduled)
    );
    let view = store.find_push(push.id).await.unwrap().unwrap();
    assert_eq!(
        (view.reason, view.finished_at),
        (Some(PushReason::Cancelled), Some(at))
    );
    let again = store.cancel_push(push.id, act("again", at)).await.unwrap();
    let by = Some(act("", at).by.to_owned());
    assert_eq!(again, store::Cancellation::Before { at, by });
    sqlx::query("DELETE FROM dead_letters")
        .execute(&pool)
        .await
        .unwrap();
    let again = store.cancel_push(push.id, act("again", at)).await.unwrap();
    assert_eq!(again, store::Cancellation::Before { at, by: None });
    assert_eq!(
        audited(&pool).await,
        [("push.cancel".to_owned(), format!("push/{}", push.id))]
    );
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

#[testkit::database_test]
async fn what_holds_a_subscription_back_names_the_pause_and_the_missing_answer(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let unverified = SubscriptionRow::in_state(SubscriptionState::PendingVerification);
    let both = unverified.paused().make(&pool).await;
    let unverified = SubscriptionRow::in_state(SubscriptionState::PendingVerification)
        .make(&pool)
        .await;
    let free = SubscriptionRow::active().make(&pool).await;
    let held = |paused_by| HeldBack {
        paused_by,
        is_unverified: true,
    };
    assert_eq!(
        store.held_back(&[both, unverified, free]).await.unwrap(),
        HashMap::from([(both, held(Some(PausedBy::Reseller))), (unverified, held(None))])
    );
}

#[testkit::database_test]
async fn the_widest_pause_is_named_and_what_waits_for_each_is_counted(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().reseller("acme").make(&pool).await;
    let other = SubscriptionRow::active().reseller("other").make(&pool).await;
    for state in [
        NotificationState::Pending,
        NotificationState::Retry,
        NotificationState::Scheduled,
        NotificationState::Sent,
    ] {
        notifications(&pool, state, subscription, 2).await;
        notifications(&pool, state, other, 1).await;
    }
    let named = async || -> HashMap<Uuid, PausedBy> {
        let held = store.held_back(&[subscription, other]).await.unwrap();
        let paused = held
            .into_iter()
            .filter_map(|(id, held)| Some((id, held.paused_by?)));
        paused.collect()
    };
    assert!(named().await.is_empty());
    sqlx::query("UPDATE subscriptions SET paused_at = now() WHERE id = $1")
        .bind(subscription)
        .execute(&pool)
        .await
        .unwrap();
    let mut expected = HashMap::from([(subscription, PausedBy::Reseller)]);
    assert_eq!(named().await, expected);
    let wider = [
        (Pausable::Subscription(subscription), PausedBy::Operator),
        (Pausable::Reseller("acme".to_owned()), PausedBy::AllOfReseller),
    ];
    for (what, by) in wider {
        assert_eq!(pause(&store, &what).await, PauseChange::Changed);
        expected.insert(subscription, by);
        assert_eq!(named().await, expected);
    }
    let mut pauses = store.list_pauses().await.unwrap();
    let own = store.pauses_by_resellers(10).await.unwrap();
    assert_eq!(own[0].name, pauses[0].name);
    assert!(own[0].name.is_some() && pauses[1].name.is_none(), "{pauses:?}");
    pauses.extend(own);
    let waiting = store.waiting_for_pauses(&pauses, 10).await.unwrap();
    let waiting: Vec<_> = waiting.iter().map(|it| (it.scope.as_str(), it.waiting)).collect();
    assert_eq!(
        waiting,
        [("subscription", 6), ("reseller", 6), ("subscription", 6)]
    );
    assert_eq!(store.waiting_for_pauses(&pauses, 1).await.unwrap().len(), 1);

    assert_eq!(store.lane_paused(Lane::Reseller).await.unwrap(), None);
    pause(&store, &Pausable::Lane(Lane::Reseller)).await;
    assert!(store.lane_paused(Lane::Reseller).await.unwrap().is_some());
    assert_eq!(store.lane_paused(Lane::Push).await.unwrap(), None);
    let all = HashMap::from([(subscription, PausedBy::Lane), (other, PausedBy::Lane)]);
    assert_eq!(named().await, all);
}

//! What is held while Swrve is out of order.

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::push::{PushId, PushState};
use sqlx::PgPool;
use store::push::SwrveHold;
use store::{Lane, Lease, Store};
use testkit::push_factory::PushRow;
use uuid::Uuid;

async fn lead(store: &Store) -> Lease {
    let seen = store.view_lease("push").await.unwrap();
    let lease = store.take_lease("push", seen, Uuid::now_v7()).await.unwrap();
    lease.expect("no other process is after the lease")
}

#[testkit::database_test]
async fn an_outage_is_one_hold_however_often_it_comes_back(pool: PgPool) {
    let store = Store::from_pool(pool);
    let leader = lead(&store).await;
    let changes = [
        SwrveHold::Begin("503"),
        SwrveHold::Probed("no answer"),
        SwrveHold::Answered,
        SwrveHold::Begin("429"),
    ];
    let mut seen = Vec::new();
    for change in changes {
        assert!(store.change_swrve_hold(&leader, change).await.unwrap());
        let [hold] = &store.list_holds().await.unwrap()[..] else {
            panic!("there is one hold")
        };
        seen.push((
            hold.since,
            hold.probes,
            hold.last_answer.clone(),
            hold.answered_at.is_some(),
        ));
    }
    let since = seen[0].0;
    let shown = |probes, answer: &str, answered| (since, probes, answer.to_owned(), answered);
    let expected = [
        shown(0, "503", false),
        shown(1, "no answer", false),
        shown(2, "no answer", true),
        shown(2, "429", false),
    ];
    assert_eq!(seen, expected);
    assert!(store.change_swrve_hold(&leader, SwrveHold::End).await.unwrap());
    assert_eq!(store.list_holds().await.unwrap(), []);
}

#[testkit::database_test]
async fn only_the_leader_changes_a_hold(pool: PgPool) {
    let store = Store::from_pool(pool);
    let (deposed, leader) = (lead(&store).await, lead(&store).await);
    assert!(
        !store
            .change_swrve_hold(&deposed, SwrveHold::Begin("503"))
            .await
            .unwrap()
    );
    assert_eq!(store.list_holds().await.unwrap(), []);
    store
        .change_swrve_hold(&leader, SwrveHold::Begin("503"))
        .await
        .unwrap();
    for change in [SwrveHold::Probed("500"), SwrveHold::Answered, SwrveHold::End] {
        assert!(!store.change_swrve_hold(&deposed, change).await.unwrap());
    }
    let holds = store.list_holds().await.unwrap();
    assert_eq!(
        (holds.len(), holds[0].probes, &*holds[0].last_answer),
        (1, 0, "503")
    );
}

#[testkit::database_test]
async fn an_outage_that_is_over_stays_known_whichever_leader_ends_it(pool: PgPool) {
    let store = Store::from_pool(pool);
    let before = SystemClock.now() - TimeDelta::minutes(1);
    let dead = lead(&store).await;
    for change in [SwrveHold::Begin("503"), SwrveHold::Probed("502")] {
        assert!(store.change_swrve_hold(&dead, change).await.unwrap());
    }
    let periods = async || store.holds_since(Lane::Push, before, None).await.unwrap();
    assert_eq!(store.last_hold_end().await.unwrap(), None);
    let going_on = periods().await;
    assert_eq!((going_on.len(), going_on[0].ended_at), (1, None));
    // The next leader goes on with what the dead one began.
    let leader = lead(&store).await;
    for change in [SwrveHold::Answered, SwrveHold::End] {
        assert!(!store.change_swrve_hold(&dead, change).await.unwrap());
        assert!(store.change_swrve_hold(&leader, change).await.unwrap());
    }
    let over = periods().await;
    let [period] = &over[..] else {
        panic!("there was one outage: {over:?}")
    };
    assert_eq!((period.since, period.probes), (going_on[0].since, 2));
    assert_eq!(period.last_answer, "502");
    assert!(period.answered_at.is_some() && period.answered_at <= period.ended_at);
    assert_eq!(store.last_hold_end().await.unwrap(), period.answered_at);
    assert!(!store.change_swrve_hold(&leader, SwrveHold::End).await.unwrap());
    assert!(
        store
            .change_swrve_hold(&leader, SwrveHold::Begin("no answer"))
            .await
            .unwrap()
    );
    let ended: Vec<bool> = periods()
        .await
        .iter()
        .map(|period| period.ended_at.is_some())
        .collect();
    assert_eq!(ended, [true, false]);
    let earlier = store.holds_since(Lane::Push, before, Some(before)).await.unwrap();
    assert_eq!(earlier, [], "what had ended before it met none of them");
    let of_resellers = store.holds_since(Lane::Reseller, before, None).await.unwrap();
    assert_eq!(of_resellers, []);
}

#[testkit::database_test]
async fn the_oldest_is_found_wherever_it_waits(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    assert_eq!(store.youngest_waiting_push().await.unwrap(), None);
    let now = SystemClock.now();
    let mut waiting: Vec<PushId> = Vec::new();
    for (seconds, state) in (0_i64..).zip(PushState::ALL.into_iter().chain(PushState::ALL)) {
        let push = PushRow::in_state(state).created_at(now - TimeDelta::seconds(60 - seconds));
        let made = push.make(&pool).await;
        if matches!(state, PushState::Pending | PushState::Queued) {
            waiting.push(made.id);
        }
    }
    waiting.sort_unstable();
    assert_eq!(store.oldest_waiting_pushes(9).await.unwrap(), waiting);
    assert_eq!(store.oldest_waiting_pushes(3).await.unwrap(), waiting[..3]);
    assert_eq!(
        store.youngest_waiting_push().await.unwrap(),
        waiting.last().copied()
    );
}

#[testkit::database_test]
async fn only_what_waits_is_forgiven(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut ids = Vec::new();
    let states = [
        PushState::Retry,
        PushState::Queued,
        PushState::GivenUp,
        PushState::Sending,
        PushState::Sent,
    ];
    for state in states {
        let due = TimeDelta::minutes(5);
        ids.push(
            PushRow::in_state(state)
                .attempts(2)
                .due_in(due)
                .make(&pool)
                .await
                .id,
        );
    }
    let before = store.find_push(ids[0]).await.unwrap().unwrap();
    assert_eq!(store.forgive_attempts(&ids, SystemClock.now()).await.unwrap(), 2);
    for (id, forgiven) in ids.iter().zip([2, 2, 0, 0, 0]) {
        let after = store.find_push(*id).await.unwrap().unwrap();
        assert_eq!(
            (after.attempts, after.replayed_after, after.history.len()),
            (2, forgiven, 2),
            "{after:?}"
        );
    }
    let after = store.find_push(ids[0]).await.unwrap().unwrap();
    assert!(after.next_attempt_at < before.next_attempt_at, "{after:?}");
}

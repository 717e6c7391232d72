//! Swrve out of order: nothing is given up, and everything is sent by itself afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use broker::Broker;
use chrono::TimeDelta;
use domain::clock::{Clock, ManualClock};
use domain::push::{PushId, PushStatus};
use simulators::swrve::Rule;
use store::push::HoldView;
use testkit::{Installation, eventually, push_request};

use crate::rig::{
    all_sent, dead_letters, enqueue, enqueue_due, for_device, queue_holds, saturday_noon, start_at, view,
};

fn failing(status: u16) -> Rule {
    Rule {
        status: Some(status),
        ..Rule::default()
    }
}

/// One send at a time, so that the order in which Swrve is asked is that in which they were sent.
fn one_at_a_time(it: &mut Installation) {
    it.config.swrve.delay = Duration::from_millis(4);
    it.config.swrve.average_processing = Duration::ZERO;
}

/// Waits until all of these have failed once, and lets one of them fail again when that has lasted for long enough.
async fn outage(it: &Installation, broker: &Broker, clock: &ManualClock, ids: &[PushId]) {
    for id in ids {
        it.settled(*id, PushStatus::Retry).await;
    }
    clock.advance(TimeDelta::from_std(it.config.push.retry.delay).unwrap());
    enqueue_due(it, broker, clock.now()).await;
}

async fn hold(it: &Installation) -> Option<HoldView> {
    it.store.list_holds().await.ok()?.pop()
}

/// Waits until the lane is held and Swrve was probed so often.
async fn probed(it: &Installation, probes: i64) -> HoldView {
    eventually(&format!("{probes} probes"), async || {
        hold(it).await.filter(|hold| hold.probes >= probes)
    })
    .await
}

async fn resume(it: &Installation) {
    eventually("the lane to be open", async || {
        hold(it).await.is_none().then_some(())
    })
    .await;
}

/// The devices in the order in which Swrve took their pushes.
fn accepted(it: &Installation) -> Vec<String> {
    let received = it.sim.received(0, 10_000).items;
    let accepted = received.into_iter().filter(|push| push.status == Some(200));
    accepted.map(|push| push.user).collect()
}

/// `device-0`, `device-1`, … in the order of the age of their pushes.
fn by_age(ids: &[PushId]) -> Vec<String> {
    let devices: BTreeMap<PushId, usize> = ids.iter().copied().zip(0..).collect();
    devices
        .values()
        .map(|number| format!("device-{number}"))
        .collect()
}

#[testkit::test]
async fn an_outage_uses_no_attempt_and_ends_by_itself_with_everything_sent_in_order_of_age(
    mut it: Installation,
) {
    one_at_a_time(&mut it);
    // One attempt more than none would be the end.
    it.config.push.retry.max_attempts = 2;
    it.sim.script(vec![failing(503)]).unwrap();
    let (broker, clock) = (it.broker(), saturday_noon());
    let mut ids = enqueue(&it, &broker, 30).await;
    let _dispatcher = start_at(&it.config, Arc::new(clock.clone()));
    outage(&it, &broker, &clock, &ids).await;
    for number in 30..35 {
        let request = push_request(&format!("device-{number}"), "Hello client!");
        ids.push(it.accept(PushStatus::Pending, request).await);
    }
    let held = probed(&it, 3).await;
    assert_eq!((&*held.class, held.answered_at), ("SWRVE", None));
    assert!(held.last_answer.contains("503"), "{held:?}");
    // What failed before that was known is due again at once.
    eventually("the first ones to wait again", async || {
        enqueue_due(&it, &broker, clock.now()).await;
        let states = futures::future::join_all(ids.iter().map(|id| view(&it, *id))).await;
        let waits = |status| matches!(status, PushStatus::InMemory | PushStatus::Pending);
        states.iter().all(|push| waits(push.status)).then_some(())
    })
    .await;
    it.sim.script(Vec::new()).unwrap();
    all_sent(&it, &ids).await;
    resume(&it).await;
    // But for the one that found out that Swrve works again.
    let accepted = accepted(&it);
    let (probe, others) = accepted.split_first().unwrap();
    let mut expected = by_age(&ids);
    expected.retain(|device| device != probe);
    assert_eq!(others, expected);
    for id in &ids {
        let push = view(&it, *id).await;
        assert_eq!(push.attempts - push.replayed_after, 1, "{push:?}");
        assert_eq!(dead_letters(&it.pool, *id).await, []);
    }
    // Afterwards the queue is read again: its messages have nothing more to say.
    queue_holds(&broker, 0).await;
    let last = enqueue(&it, &broker, 1).await;
    all_sent(&it, &last).await;
}

#[testkit::test]
async fn the_next_leader_goes_on_with_the_hold(mut it: Installation) {
    it.config.swrve.url = config::Secret::new("http://127.0.0.1:1");
    let (broker, clock) = (it.broker(), saturday_noon());
    let ids = enqueue(&it, &broker, 8).await;
    let first = start_at(&it.config, Arc::new(clock.clone()));
    outage(&it, &broker, &clock, &ids).await;
    let held = probed(&it, 1).await;
    first.stop().await;
    let second = start_at(&it.config, Arc::new(clock.clone()));
    let still = probed(&it, held.probes + 2).await;
    assert_eq!((still.since, still.answered_at), (held.since, None));
    second.stop().await;
    for id in &ids {
        let push = view(&it, *id).await;
        assert_eq!(
            (push.attempts - push.replayed_after, push.claimed),
            (0, false),
            "{push:?}"
        );
    }
}

#[testkit::test]
async fn a_hold_spares_pushes_also_where_a_missing_answer_would_end_them(mut it: Installation) {
    let swrve = it.config.swrve.url.clone();
    it.config.swrve.url = config::Secret::new("http://127.0.0.1:1");
    it.config.swrve.retry_on_timeout = false;
    let (broker, clock) = (it.broker(), saturday_noon());
    let dispatcher = start_at(&it.config, Arc::new(clock.clone()));
    // What failed before it was known that Swrve is out of order has ended.
    let ended = enqueue(&it, &broker, 3).await;
    for id in &ended {
        it.settled(*id, PushStatus::Failed).await;
    }
    clock.advance(TimeDelta::seconds(31));
    let spared = enqueue(&it, &broker, 3).await;
    probed(&it, 3).await;
    dispatcher.stop().await;
    for id in &spared {
        let push = view(&it, *id).await;
        assert_eq!(push.attempts - push.replayed_after, 0, "{push:?}");
    }
    it.config.swrve.url = swrve;
    let _dispatcher = start_at(&it.config, Arc::new(clock.clone()));
    all_sent(&it, &spared).await;
    resume(&it).await;
    for id in &ended {
        assert_eq!(view(&it, *id).await.status, PushStatus::Failed);
    }
}

#[testkit::test]
async fn a_push_that_swrve_never_takes_ends_and_holds_up_nothing_else(mut it: Installation) {
    one_at_a_time(&mut it);
    it.config.push.retry.max_attempts = 2;
    it.sim.script(vec![failing(500)]).unwrap();
    let (broker, clock) = (it.broker(), saturday_noon());
    let ids = enqueue(&it, &broker, 8).await;
    let _dispatcher = start_at(&it.config, Arc::new(clock.clone()));
    outage(&it, &broker, &clock, &ids).await;
    probed(&it, 1).await;
    it.sim.script(vec![for_device("device-7", failing(500))]).unwrap();
    eventually("all others to be sent, and that one to end", async || {
        clock.advance(TimeDelta::minutes(1));
        enqueue_due(&it, &broker, clock.now()).await;
        let states = futures::future::join_all(ids.iter().map(|id| view(&it, *id))).await;
        let (poison, others) = states.split_last()?;
        let sent = others.iter().all(|push| push.status == PushStatus::Sent);
        (sent && poison.status == PushStatus::GivenUp).then_some(())
    })
    .await;
    assert_eq!(dead_letters(&it.pool, ids[7]).await.len(), 1);
    resume(&it).await;
}

//! The attempts of one push after each other.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::clock::{Clock, ManualClock};
use domain::push::{AttemptStatus, PushState, PushStatus};
use simulators::swrve::Rule;
use testkit::Installation;
use testkit::push_factory::PushRow;

use crate::rig::{dead_letters, enqueue_due, enqueue_for, saturday_noon, start, start_at};

fn unavailable(times: Option<u64>) -> Rule {
    Rule {
        status: Some(503),
        times,
        ..Rule::default()
    }
}

fn wait_out_the_delay(it: &Installation, clock: &ManualClock) {
    clock.advance(TimeDelta::from_std(it.config.push.retry.delay).unwrap());
}

#[testkit::test]
async fn a_retry_may_succeed_and_every_attempt_is_kept(it: Installation) {
    it.sim.script(vec![unavailable(Some(1))]).unwrap();
    let clock = saturday_noon();
    let _dispatcher = start_at(&it.config, Arc::new(clock.clone()));
    let broker = it.broker();
    let id = enqueue_for(&it, &broker, "device-1").await;
    it.settled(id, PushStatus::Retry).await;
    wait_out_the_delay(&it, &clock);
    assert_eq!(enqueue_due(&it, &broker, clock.now()).await, [id]);
    let push = it.settled(id, PushStatus::Sent).await;
    let history: Vec<_> = push.history.iter().map(|a| (a.number, a.status)).collect();
    assert_eq!(history, [(1, AttemptStatus::Error), (2, AttemptStatus::Ok)]);
    assert_eq!((push.attempts, push.next_attempt_at), (2, None));
    assert_eq!(dead_letters(&it.pool, id).await, []);
}

#[testkit::test]
async fn a_push_is_given_up_after_exactly_the_allowed_attempts(mut it: Installation) {
    it.config.push.retry.max_attempts = 3;
    it.sim.script(vec![unavailable(None)]).unwrap();
    let clock = saturday_noon();
    let _dispatcher = start_at(&it.config, Arc::new(clock.clone()));
    let broker = it.broker();
    let id = enqueue_for(&it, &broker, "device-1").await;
    for attempt in 1..3 {
        let push = it.settled(id, PushStatus::Retry).await;
        assert_eq!(push.attempts, attempt);
        wait_out_the_delay(&it, &clock);
        assert_eq!(enqueue_due(&it, &broker, clock.now()).await, [id]);
    }
    let push = it.settled(id, PushStatus::GivenUp).await;
    assert_eq!((push.attempts, push.next_attempt_at), (3, None));
    assert!(push.finished_at.is_some());
    assert!(push.history.iter().all(|a| a.status == AttemptStatus::Error));
    assert_eq!((push.history.len(), it.sim.report().received), (3, 3));
    let letters = dead_letters(&it.pool, id).await;
    let [letter] = &letters[..] else {
        panic!("{letters:?}")
    };
    assert_eq!((&*letter.reason, letter.attempts), ("GIVEN_UP", Some(3)));
    assert_eq!(
        (&*letter.fingerprint, &*letter.detail),
        ("swrve/503/503", "Service Unavailable")
    );
}

#[testkit::test]
async fn the_last_allowed_attempt_may_still_succeed(it: Installation) {
    let (_dispatcher, broker) = (start(&it.config), it.broker());
    let allowed = it.config.push.retry.max_attempts;
    let waiting = PushRow::in_state(PushState::Queued).attempts(allowed - 1);
    let id = waiting.make(&it.pool).await.id;
    it.publish(&broker, &[id]).await;
    assert_eq!(it.settled(id, PushStatus::Sent).await.attempts, allowed);
}

#[testkit::test]
async fn an_unanswered_last_attempt_is_given_up_too(mut it: Installation) {
    it.config.swrve.url = config::Secret::new("http://127.0.0.1:1");
    let (_dispatcher, broker) = (start(&it.config), it.broker());
    let waiting = PushRow::in_state(PushState::Queued).attempts(it.config.push.retry.max_attempts - 1);
    let id = waiting.make(&it.pool).await.id;
    it.publish(&broker, &[id]).await;
    it.settled(id, PushStatus::GivenUp).await;
    let letters = dead_letters(&it.pool, id).await;
    let [letter] = &letters[..] else {
        panic!("{letters:?}")
    };
    assert_eq!(
        (&*letter.reason, &*letter.fingerprint),
        ("GIVEN_UP", "swrve/unreachable")
    );
}

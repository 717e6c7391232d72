//! Sending windows, looked at again when a push's turn comes.

use std::sync::Arc;

use broker::Broker;
use chrono::TimeDelta;
use domain::clock::{Clock, ManualClock};
use domain::push::{AttemptStatus, ErrorType, PushId, PushRequest, PushStatus};
use testkit::{Installation, push_request};

use crate::rig::{
    DeadLetter, Dispatcher, all_sent, assert_each_sent_once, dead_letters, enqueue_due, queue_holds,
    saturday_noon, start_at, time,
};

/// Accepts a push with this window and publishes its message.
async fn enqueue_with(it: &Installation, broker: &Broker, window: &str) -> PushId {
    let request = PushRequest {
        cron_expression: Some(window.to_owned()),
        ..push_request("device-1", window)
    };
    let id = it.accept(PushStatus::InMemory, request).await;
    it.publish(broker, &[id]).await;
    id
}

fn start(it: &Installation, clock: &ManualClock) -> Dispatcher {
    start_at(&it.config, Arc::new(clock.clone()))
}

#[testkit::test]
async fn a_push_that_missed_its_window_waits_for_the_next_one(it: Installation) {
    let (clock, broker) = (saturday_noon(), it.broker());
    let dispatcher = start(&it, &clock);
    let id = enqueue_with(&it, &broker, "0 0 9 ? * MON-FRI").await;
    let push = it.settled(id, PushStatus::Scheduled).await;
    assert_eq!(push.next_attempt_at, Some(time("2026-11-23T09:00:00Z")));
    assert_eq!((push.attempts, push.history.len(), push.claimed), (0, 0, false));
    queue_holds(&broker, 0).await;
    assert_eq!(it.sim.report().received, 0);
    clock.advance(TimeDelta::hours(45));
    assert_eq!(enqueue_due(&it, &broker, clock.now()).await, [id]);
    assert_eq!(it.settled(id, PushStatus::Sent).await.attempts, 1);
    dispatcher.stop().await;
    queue_holds(&broker, 0).await;
    assert_each_sent_once(&it, 1);
}

#[testkit::test]
async fn a_push_is_sent_while_its_window_is_open_and_for_a_grace_after(it: Installation) {
    assert_eq!(it.config.push.cron.grace.as_secs(), 60);
    let (clock, broker) = (saturday_noon(), it.broker());
    let _dispatcher = start(&it, &clock);
    let mut open = Vec::new();
    for window in [
        "0 0 12 ? * SAT",
        "* * 9-17 * * ?",
        "30 59 11 * * ?",
        "0 59 11 * * ?",
    ] {
        open.push(enqueue_with(&it, &broker, window).await);
    }
    all_sent(&it, &open).await;
    for window in ["59 58 11 * * ?", "1 0 12 * * ?"] {
        let id = enqueue_with(&it, &broker, window).await;
        it.settled(id, PushStatus::Scheduled).await;
    }
    assert_each_sent_once(&it, open.len());
}

#[testkit::test]
async fn windows_are_read_in_the_configured_time_zone(mut it: Installation) {
    it.config.push.time_zone = chrono_tz::Europe::Riga;
    let (clock, broker) = (saturday_noon(), it.broker());
    let _dispatcher = start(&it, &clock);
    let open = enqueue_with(&it, &broker, "0 0 14 * * ?").await;
    all_sent(&it, &[open]).await;
    let closed = enqueue_with(&it, &broker, "0 0 12 * * ?").await;
    let push = it.settled(closed, PushStatus::Scheduled).await;
    assert_eq!(push.next_attempt_at, Some(time("2026-11-22T10:00:00Z")));
}

#[testkit::test]
async fn a_push_whose_window_never_opens_again_fails_with_the_reason(it: Installation) {
    let (clock, broker) = (saturday_noon(), it.broker());
    let _dispatcher = start(&it, &clock);
    let id = enqueue_with(&it, &broker, "0 0 9 1 1 ? 2020").await;
    let push = it.settled(id, PushStatus::Failed).await;
    let [attempt] = &push.history[..] else {
        panic!("{push:?}")
    };
    assert_eq!(
        (attempt.status, attempt.error_type),
        (AttemptStatus::Error, Some(ErrorType::Other))
    );
    let reason = "the cron expression matches no time from 2026-11-21 12:00:00 UTC on";
    assert_eq!(attempt.other_error.as_deref(), Some(reason));
    let letter = DeadLetter {
        reason: "FAILED".to_owned(),
        fingerprint: "other/internal".to_owned(),
        attempts: Some(1),
        error_type: Some("OTHER".to_owned()),
        detail: reason.to_owned(),
    };
    assert_eq!(dead_letters(&it.pool, id).await, [letter]);
    assert_eq!(it.sim.report().received, 0);
}

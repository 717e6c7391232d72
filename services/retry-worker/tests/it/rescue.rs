//! Pushes that no process has any more: found by their lease, without a restart.

use std::time::Duration;

use chrono::TimeDelta;
use domain::push::{AttemptStatus, ErrorType, PushState, PushStatus};
use store::push::PromotionQueue;
use testkit::Installation;
use testkit::push_factory::{MadePush, PushRow};

use crate::rig::{dead_letters, hurry, put_off, read, reader, rows, start, view};

async fn lost(it: &Installation, row: PushRow) -> MadePush {
    row.leased_for(TimeDelta::seconds(-1)).make(&it.pool).await
}

#[testkit::test]
async fn a_push_whose_lease_ran_out_waits_for_the_queue_again(mut it: Installation) {
    hurry(&mut it.config);
    put_off(&mut it.config.push.job.send_pending);
    let worker = start(&it.config);
    let queued = lost(&it, PushRow::in_state(PushState::Queued)).await.id;
    let claimed = lost(&it, PushRow::in_state(PushState::Sending)).await.id;
    let mut alive = Vec::new();
    for state in [PushState::Queued, PushState::Sending] {
        alive.push(PushRow::in_state(state).make(&it.pool).await.id);
    }
    let before = rows(&it.pool, &alive).await;
    let push = it.settled(queued, PushStatus::Pending).await;
    assert_eq!(
        (push.attempts, push.history.len(), push.leased_until),
        (0, 0, None)
    );
    let push = it.settled(claimed, PushStatus::Pending).await;
    let [attempt] = &push.history[..] else {
        panic!("{push:?}")
    };
    assert_eq!((push.attempts, push.claimed, push.leased_until), (1, false, None));
    assert_eq!(
        (attempt.status, attempt.error_type),
        (AttemptStatus::Error, Some(ErrorType::Other))
    );
    assert!(attempt.other_error.is_some());
    worker.stop().await;
    assert_eq!(rows(&it.pool, &alive).await, before);
    assert!(dead_letters(&it.pool).await.is_empty());
}

#[testkit::test]
async fn a_push_whose_last_attempt_was_lost_is_given_up(mut it: Installation) {
    hurry(&mut it.config);
    let allowed = it.config.push.retry.max_attempts;
    let _worker = start(&it.config);
    let id = lost(&it, PushRow::in_state(PushState::Sending).attempts(allowed))
        .await
        .id;
    let push = it.settled(id, PushStatus::GivenUp).await;
    assert_eq!((push.attempts, push.claimed), (allowed, false));
    assert_eq!(push.history.last().unwrap().error_type, Some(ErrorType::Other));
    let letters = dead_letters(&it.pool).await;
    let [letter] = &letters[..] else {
        panic!("{letters:?}")
    };
    assert_eq!((&*letter.reason, letter.push_id), ("GIVEN_UP", Some(id.uuid())));
    assert_eq!(letter.attempts, i32::try_from(allowed).ok());
    assert_eq!(letter.fingerprint, "other/lease-lost");
}

#[testkit::test]
async fn a_push_that_was_promoted_and_never_published_is_published(mut it: Installation) {
    hurry(&mut it.config);
    let id = PushRow::in_state(PushState::Pending).make(&it.pool).await.id;
    // Where a worker that is killed between the two leaves it.
    let promoted = it
        .store
        .promote_pushes(PromotionQueue::Pending, 10, Duration::from_millis(1))
        .await
        .unwrap();
    assert_eq!(promoted.len(), 1);
    assert_eq!(view(&it, id).await.status, PushStatus::InMemory);
    let broker = it.broker();
    let mut reader = reader(&broker);
    let _worker = start(&it.config);
    assert_eq!(read(&mut reader, 1).await, [id]);
    assert_eq!(view(&it, id).await.status, PushStatus::InMemory);
}

//! Giving back: the attempt is taken back, in the count and as a row.

use chrono::{SubsecRound, TimeDelta};
use domain::clock::{Clock, SystemClock};
use domain::push::{AttemptStatus, PushState};
use domain::reason::PushReason;
use sqlx::PgPool;
use store::Store;
use store::push::Release;
use testkit::push_factory::PushRow;
use uuid::Uuid;

use crate::scene::{LONG, everything};

#[testkit::database_test]
async fn hand_back_takes_the_attempt_back(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Sending)
        .attempts(2)
        .make(&pool)
        .await;
    let release = Release {
        id: push.id,
        lease_token: push.lease_token,
        deferred_to: None,
    };
    assert!(
        store
            .release_pushes(&[release], LONG)
            .await
            .unwrap()
            .contains(&push.id)
    );

    let after = store.find_push(push.id).await.unwrap().unwrap();
    assert_eq!(
        PushState::of(
            after.status,
            after.claimed,
            after.reason == Some(PushReason::Cancelled)
        ),
        PushState::Queued
    );
    assert_eq!((after.attempts, after.history.len()), (1, 1));
    assert_eq!(
        after.history[0].status,
        AttemptStatus::Error,
        "the earlier attempt stays"
    );
    assert_eq!(after.leased_until, Some(after.updated_at + LONG));
}

#[testkit::database_test]
async fn a_deferred_push_waits_for_its_window(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Sending).make(&pool).await;
    let window = SystemClock.now().trunc_subsecs(6) + TimeDelta::hours(1);
    let release = Release {
        id: push.id,
        lease_token: push.lease_token,
        deferred_to: Some(window),
    };
    assert_eq!(store.release_pushes(&[release], LONG).await.unwrap().len(), 1);

    let after = store.find_push(push.id).await.unwrap().unwrap();
    assert_eq!(
        PushState::of(
            after.status,
            after.claimed,
            after.reason == Some(PushReason::Cancelled)
        ),
        PushState::Scheduled
    );
    assert_eq!((after.next_attempt_at, after.leased_until), (Some(window), None));
    assert_eq!((after.attempts, after.history.len()), (0, 0));
}

#[testkit::database_test]
async fn a_release_with_an_old_token_changes_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Sending).make(&pool).await;
    let before = everything(&pool).await;
    let release = Release {
        id: push.id,
        lease_token: Uuid::now_v7(),
        deferred_to: None,
    };
    assert!(store.release_pushes(&[release], LONG).await.unwrap().is_empty());
    assert_eq!(everything(&pool).await, before);

    let present = Release {
        lease_token: push.lease_token,
        deferred_to: None,
        ..release
    };
    let late = Release {
        deferred_to: Some(SystemClock.now()),
        ..release
    };
    assert_eq!(
        store.release_pushes(&[late, present], LONG).await.unwrap().len(),
        1
    );
    let after = store.find_push(push.id).await.unwrap().unwrap();
    assert_eq!(
        PushState::of(
            after.status,
            after.claimed,
            after.reason == Some(PushReason::Cancelled)
        ),
        PushState::Queued,
        "the present token decides"
    );
}

//! Rescue: only what has lost its lease, the longest lost first.

use chrono::TimeDelta;
use domain::push::{AttemptStatus, ErrorType, PushState};
use sqlx::PgPool;
use store::Rescued;
use store::Store;
use testkit::push_factory::PushRow;

use crate::scene::{POLICY, count, everything, pushes, state_of};

fn lost(state: PushState) -> PushRow {
    PushRow::in_state(state).leased_for(TimeDelta::seconds(-1))
}

#[testkit::database_test]
async fn unexpired_leases_are_left_alone(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    pushes(&pool, PushState::Queued, 2).await;
    pushes(&pool, PushState::Sending, 2).await;
    let before = everything(&pool).await;
    assert_eq!(
        store.rescue_pushes(100, POLICY.max_attempts).await.unwrap(),
        Rescued::default()
    );
    assert_eq!(everything(&pool).await, before);
}

#[testkit::database_test]
async fn the_longest_lost_are_rescued_first_and_no_more_than_the_limit(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let recent = lost(PushState::Queued).make(&pool).await;
    let older = lost(PushState::Queued)
        .leased_for(TimeDelta::hours(-1))
        .make(&pool)
        .await;
    assert_eq!(
        store.rescue_pushes(1, POLICY.max_attempts).await.unwrap().pending,
        1
    );
    assert_eq!(state_of(&store, older.id).await, PushState::Pending);
    assert_eq!(state_of(&store, recent.id).await, PushState::Queued);
}

#[testkit::database_test]
async fn a_lost_attempt_ends_as_an_error_of_unknown_outcome(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = lost(PushState::Sending).attempts(2).make(&pool).await;
    assert_eq!(
        store.rescue_pushes(9, POLICY.max_attempts).await.unwrap(),
        Rescued {
            pending: 1,
            retry: 0,
            given_up: 0
        }
    );
    let after = store.find_push(push.id).await.unwrap().unwrap();
    assert_eq!((after.attempts, after.history.len()), (2, 2));
    assert_eq!(after.history[1].status, AttemptStatus::Error);
    assert_eq!(after.history[1].error_type, Some(ErrorType::Other));
    assert!(
        after.history[1]
            .other_error
            .as_deref()
            .is_some_and(|text| text.contains("may have been sent"))
    );
}

#[testkit::database_test]
async fn a_push_lost_in_its_last_attempt_is_given_up_with_a_dead_letter(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let sending = lost(PushState::Sending).attempts(3).make(&pool).await;
    let queued = lost(PushState::Queued).attempts(3).make(&pool).await;
    assert_eq!(
        store.rescue_pushes(9, 3).await.unwrap(),
        Rescued {
            pending: 1,
            retry: 0,
            given_up: 1
        }
    );
    assert_eq!(state_of(&store, sending.id).await, PushState::GivenUp);
    assert_eq!(
        state_of(&store, queued.id).await,
        PushState::Pending,
        "no attempt was lost"
    );
    let fingerprint: Vec<String> =
        sqlx::query_scalar("SELECT fingerprint FROM dead_letters WHERE push_id = $1 AND reason = 'GIVEN_UP'")
            .bind(sending.id.uuid())
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(fingerprint, ["other/lease-lost"]);
}

#[testkit::database_test]
async fn two_rescuers_at_once_rescue_each_push_once(pool: PgPool) {
    let (one, other) = (Store::from_pool(pool.clone()), Store::from_pool(pool.clone()));
    for _ in 0..40 {
        lost(PushState::Sending).attempts(3).make(&pool).await;
    }
    let (first, second) = tokio::join!(one.rescue_pushes(40, 3), other.rescue_pushes(40, 3));
    let rest = one.rescue_pushes(40, 3).await.unwrap();
    assert_eq!(
        first.unwrap().given_up + second.unwrap().given_up + rest.given_up,
        40
    );
    assert_eq!(count(&pool, "dead_letters").await, 40);
}

//! Completion: fenced by the lease token, once, the whole batch or nothing.

use chrono::TimeDelta;
use domain::push::{AttemptStatus, PushState, PushStatus, SendOutcome};
use sqlx::PgPool;
use store::Rescued;
use store::Store;
use store::push::Completion;
use testkit::push_factory::{MadePush, PushRow};

use crate::scene::{
    POLICY, claim, completion, count, everything, lead, pushes, refused, state_of, until_blocked,
};

#[testkit::database_test]
async fn expired_lease_rejects_completion(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Sending)
        .leased_for(TimeDelta::seconds(-1))
        .make(&pool)
        .await;
    let rescued = store.rescue_pushes(10, POLICY.max_attempts).await.unwrap();
    assert_eq!(
        rescued,
        Rescued {
            pending: 1,
            retry: 0,
            given_up: 0
        }
    );
    let before = everything(&pool).await;

    for late in [SendOutcome::Delivered, refused(503), refused(400)] {
        assert!(
            store
                .complete_pushes(&[completion(push, 1, late)])
                .await
                .unwrap()
                .is_empty()
        );
    }
    assert_eq!(everything(&pool).await, before);
}

/// Whichever of the two gets the row first wins, and the other finds nothing to do.
#[testkit::database_test]
async fn completion_and_rescue_at_once_agree_on_one_end(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Sending)
        .attempts(3)
        .leased_for(TimeDelta::seconds(-1))
        .make(&pool)
        .await;
    let mut blocker = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM push_notifications FOR UPDATE")
        .execute(&mut *blocker)
        .await
        .unwrap();
    let unblock = async {
        until_blocked(&pool, 1).await;
        assert_eq!(
            store.rescue_pushes(10, 3).await.unwrap(),
            Rescued::default(),
            "a locked row is passed over"
        );
        blocker.rollback().await.unwrap();
    };
    let batch = [completion(push, 3, SendOutcome::Delivered)];
    let (completed, ()) = tokio::join!(store.complete_pushes(&batch), unblock);
    assert!(completed.unwrap().contains(&push.id));
    assert_eq!(store.rescue_pushes(10, 3).await.unwrap(), Rescued::default());
    assert_eq!(state_of(&store, push.id).await, PushState::Sent);
    assert_eq!(count(&pool, "dead_letters").await, 0);
}

#[testkit::database_test]
async fn a_second_completion_changes_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Sending).make(&pool).await;
    let failed = completion(push, 1, refused(400));
    assert_eq!(
        store
            .complete_pushes(std::slice::from_ref(&failed))
            .await
            .unwrap()
            .len(),
        1
    );
    let before = everything(&pool).await;
    for again in [failed, completion(push, 1, SendOutcome::Delivered)] {
        assert!(store.complete_pushes(&[again]).await.unwrap().is_empty());
    }
    assert_eq!(everything(&pool).await, before);
}

#[testkit::database_test]
async fn a_completion_that_comes_twice_in_a_batch_writes_one_dead_letter(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Sending).make(&pool).await;
    let failed = completion(push, 1, refused(400));
    assert_eq!(
        store
            .complete_pushes(&[failed.clone(), failed])
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(count(&pool, "dead_letters").await, 1);
}

/// A push that was rescued and claimed again can have both attempts completed in one batch; only the present one counts.
#[testkit::database_test]
async fn a_late_completion_beside_the_present_one_does_not_speak_for_it(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for late_first in [true, false] {
        let former = PushRow::in_state(PushState::Sending)
            .leased_for(TimeDelta::seconds(-1))
            .make(&pool)
            .await;
        assert_eq!(
            store
                .rescue_pushes(10, POLICY.max_attempts)
                .await
                .unwrap()
                .pending,
            1
        );
        let leader = lead(&store).await;
        let claimed = store
            .claim_pushes(&[former.id], claim(&leader))
            .await
            .unwrap()
            .remove(0);
        let present = MadePush {
            lease_token: claimed.lease_token,
            ..former
        };
        let mut batch = vec![
            completion(former, 1, refused(400)),
            completion(present, 2, SendOutcome::Delivered),
        ];
        if !late_first {
            batch.reverse();
        }

        assert_eq!(store.complete_pushes(&batch).await.unwrap().len(), 1);

        let push = store.find_push(former.id).await.unwrap().unwrap();
        assert_eq!(push.status, PushStatus::Sent);
        let attempts: Vec<AttemptStatus> = push.history.iter().map(|attempt| attempt.status).collect();
        assert_eq!(attempts, [AttemptStatus::Error, AttemptStatus::Ok]);
        assert_eq!(count(&pool, "dead_letters").await, 0);
    }
}

#[testkit::database_test]
async fn a_batch_that_breaks_a_rule_completes_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let made = pushes(&pool, PushState::Sending, 2).await;
    let before = everything(&pool).await;
    let timeless = Completion {
        next_attempt_at: None,
        ..completion(made[1], 1, refused(503))
    };
    let error = store
        .complete_pushes(&[completion(made[0], 1, refused(400)), timeless])
        .await
        .unwrap_err();
    assert!(!error.is_transient(), "{error:?}");
    assert_eq!(everything(&pool).await, before);
}

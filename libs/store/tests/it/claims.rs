//! Claiming: one claimant for each push, under the current epoch only.

use std::collections::HashSet;

use domain::push::{AttemptStatus, PushId, PushState, SendOutcome};
use sqlx::PgPool;
use store::push::Release;
use store::{Lease, Store};
use testkit::push_factory::{MadePush, PushRow};
use uuid::Uuid;

use crate::scene::{LONG, claim, completion, everything, ids, lead, pushes, state_of, until_blocked};

#[testkit::database_test]
async fn claim_brings_the_payload_and_starts_an_attempt(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Queued)
        .attempts(1)
        .traceparent("00-aa-bb-01")
        .make(&pool)
        .await;
    let leader = lead(&store).await;

    let claimed = store.claim_pushes(&[push.id], claim(&leader)).await.unwrap();

    let [claimed] = &claimed[..] else {
        panic!("one push was to be claimed: {claimed:?}")
    };
    assert_eq!((claimed.id, claimed.attempts), (push.id, 2));
    assert_eq!(
        (&*claimed.push_key, &*claimed.message),
        ("device-1", "Hello client!")
    );
    assert_eq!(claimed.message_prototype_key.as_deref(), Some("Hello"));
    assert_eq!(claimed.cron_expression.as_deref(), Some("* * * * * ?"));
    assert_eq!(claimed.traceparent.as_deref(), Some("00-aa-bb-01"));
    let stored = store.find_push(push.id).await.unwrap().unwrap();
    assert_eq!(stored.history[1].status, AttemptStatus::InProcess);
    assert_eq!(stored.history[1].started_at, stored.updated_at);
}

#[testkit::database_test]
async fn claim_under_an_old_epoch_takes_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let queued = ids(&pushes(&pool, PushState::Queued, 3).await);
    let former = lead(&store).await;
    let leader = lead(&store).await;
    let before = everything(&pool).await;

    let earlier = Lease {
        epoch: leader.epoch - 1,
        ..leader.clone()
    };
    let stranger = Lease {
        holder: Uuid::now_v7(),
        ..leader.clone()
    };
    let other_lease = Lease {
        name: "other".to_owned(),
        ..leader.clone()
    };
    for pretender in [&former, &earlier, &stranger, &other_lease] {
        assert_eq!(store.claim_pushes(&queued, claim(pretender)).await.unwrap(), []);
    }
    assert_eq!(everything(&pool).await, before);

    assert_eq!(
        store.claim_pushes(&queued, claim(&leader)).await.unwrap().len(),
        3
    );
}

#[testkit::database_test]
async fn claim_under_a_released_lease_takes_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let queued = ids(&pushes(&pool, PushState::Queued, 1).await);
    let leader = lead(&store).await;
    assert!(store.release_lease(&leader).await.unwrap());
    assert_eq!(store.claim_pushes(&queued, claim(&leader)).await.unwrap(), []);
}

/// Both claims are made to wait for the same locked row, so that they meet whatever the machine does.
#[testkit::database_test]
async fn two_claims_at_once_give_each_push_to_exactly_one(pool: PgPool) {
    let (one, other) = (Store::from_pool(pool.clone()), Store::from_pool(pool.clone()));
    let leader = lead(&one).await;
    let queued = ids(&pushes(&pool, PushState::Queued, 50).await);
    let reversed: Vec<PushId> = queued.iter().rev().copied().collect();
    let mut blocker = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM push_notifications WHERE id = $1 FOR UPDATE")
        .bind(queued[25].uuid())
        .execute(&mut *blocker)
        .await
        .unwrap();

    let unblock = async {
        until_blocked(&pool, 2).await;
        blocker.rollback().await.unwrap();
    };
    let (first, second, ()) = tokio::join!(
        one.claim_pushes(&queued, claim(&leader)),
        other.claim_pushes(&reversed, claim(&leader)),
        unblock
    );

    let claimed: Vec<PushId> = first
        .unwrap()
        .iter()
        .chain(&second.unwrap())
        .map(|push| push.id)
        .collect();
    assert_eq!(claimed.len(), 50, "each push once");
    assert_eq!(
        claimed.into_iter().collect::<HashSet<_>>(),
        queued.iter().copied().collect()
    );
    for id in queued {
        assert_eq!(one.find_push(id).await.unwrap().unwrap().attempts, 1);
    }
}

#[testkit::database_test]
async fn an_id_that_comes_twice_in_a_batch_is_claimed_once(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Queued).make(&pool).await;
    let leader = lead(&store).await;
    let claimed = store
        .claim_pushes(&[push.id, push.id], claim(&leader))
        .await
        .unwrap();
    assert_eq!((claimed.len(), claimed[0].attempts), (1, 1));
}

#[testkit::database_test]
async fn a_message_redelivered_after_completion_is_not_claimable(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Sending).make(&pool).await;
    let sent = completion(push, 1, SendOutcome::Delivered);
    assert_eq!(store.complete_pushes(&[sent]).await.unwrap().len(), 1);
    let before = everything(&pool).await;

    let leader = lead(&store).await;
    assert_eq!(store.claim_pushes(&[push.id], claim(&leader)).await.unwrap(), []);
    assert_eq!(everything(&pool).await, before);
}

#[testkit::database_test]
async fn a_claim_after_a_hand_back_uses_the_same_attempt_number(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Queued).attempts(1).make(&pool).await;
    let leader = lead(&store).await;
    let first = store
        .claim_pushes(&[push.id], claim(&leader))
        .await
        .unwrap()
        .remove(0);
    let release = Release {
        id: push.id,
        lease_token: first.lease_token,
        deferred_to: None,
    };
    assert_eq!(store.release_pushes(&[release], LONG).await.unwrap().len(), 1);

    let second = store
        .claim_pushes(&[push.id], claim(&leader))
        .await
        .unwrap()
        .remove(0);

    assert_eq!((first.attempts, second.attempts), (2, 2));
    assert_ne!(first.lease_token, second.lease_token);
    let late = completion(
        MadePush {
            id: push.id,
            lease_token: first.lease_token,
        },
        2,
        SendOutcome::Delivered,
    );
    assert!(
        store.complete_pushes(&[late]).await.unwrap().is_empty(),
        "the first claim is over"
    );
    assert_eq!(state_of(&store, push.id).await, PushState::Sending);
}

#[testkit::database_test]
async fn claiming_nothing_and_the_unknown_is_harmless(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let leader = lead(&store).await;
    assert_eq!(store.claim_pushes(&[], claim(&leader)).await.unwrap(), []);
    let unknown = [PushId::from(Uuid::nil()), PushId::from(Uuid::now_v7())];
    assert_eq!(store.claim_pushes(&unknown, claim(&leader)).await.unwrap(), []);
}

//! Storing batches: all of it or nothing.

use chrono::SubsecRound;
use domain::push::{PushState, PushStatus};
use sqlx::PgPool;
use store::Store;
use store::push::{IdempotencyKey, Inserted, NewPush};
use uuid::Uuid;

use crate::scene::{LONG, count, new_push, state_of};

/// A version 7 identifier from a time that no partition holds.
fn outside_every_partition(push: NewPush) -> NewPush {
    NewPush {
        id: Uuid::from_u128(7 << 76).into(),
        ..push
    }
}

#[testkit::database_test]
async fn a_batch_of_mixed_statuses_is_stored_as_handed_in(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let statuses = [
        PushStatus::InMemory,
        PushStatus::Scheduled,
        PushStatus::Pending,
        PushStatus::InMemory,
    ];
    let mut batch = statuses.map(|status| new_push(status, None));
    batch[0].traceparent = Some("00-aa-bb-01".to_owned());
    batch[2].request.message_prototype_key = None;
    assert_eq!(
        store.insert_pushes(&batch, LONG).await.unwrap(),
        [Inserted::New; 4]
    );

    for handed_in in &batch {
        let push = store.find_push(handed_in.id).await.unwrap().unwrap();
        assert_eq!(
            (push.status, push.claimed, push.attempts),
            (handed_in.status, false, 0)
        );
        assert_eq!(push.platform, handed_in.request.platform);
        assert_eq!(
            push.message_prototype_key,
            handed_in.request.message_prototype_key
        );
        assert_eq!(push.cron_expression, handed_in.request.cron_expression);
        assert_eq!(
            push.next_attempt_at,
            handed_in.request.first_window.map(|at| at.trunc_subsecs(6))
        );
        assert_eq!(push.created_at, handed_in.created_at.trunc_subsecs(6));
        let leased = (push.status == PushStatus::InMemory).then(|| push.updated_at + LONG);
        assert_eq!(push.leased_until, leased);
        assert_eq!((push.finished_at, push.history.len()), (None, 0));
    }
    let traced: Vec<Uuid> =
        sqlx::query_scalar("SELECT id FROM push_notifications WHERE traceparent = '00-aa-bb-01'")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(traced, [batch[0].id.uuid()]);
}

#[testkit::database_test]
async fn an_empty_batch_is_stored_at_no_harm(pool: PgPool) {
    let store = Store::from_pool(pool);
    assert_eq!(store.insert_pushes(&[], LONG).await.unwrap(), []);
}

#[testkit::database_test]
async fn a_batch_with_an_id_outside_of_every_partition_stores_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let keyed = IdempotencyKey {
        owner: Uuid::now_v7(),
        key: "k".to_owned(),
        request: [1; 32],
    };
    for key in [None, Some(keyed)] {
        let good = new_push(PushStatus::InMemory, key.clone());
        let bad = outside_every_partition(new_push(PushStatus::InMemory, None));
        let error = store.insert_pushes(&[good, bad], LONG).await.unwrap_err();
        assert!(matches!(error, store::Error::Refused(_)), "{error:?}");
        assert_eq!(count(&pool, "push_notifications").await, 0);
        assert_eq!(count(&pool, "idempotency_keys").await, 0);
    }
}

#[testkit::database_test]
async fn a_batch_that_breaks_a_rule_stores_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut windowless = new_push(PushStatus::Scheduled, None);
    windowless.request.first_window = None;
    let terminal = new_push(PushStatus::Sent, None);
    for bad in [windowless, terminal] {
        let error = store
            .insert_pushes(&[new_push(PushStatus::Pending, None), bad], LONG)
            .await
            .unwrap_err();
        assert!(!error.is_transient(), "{error:?}");
        assert_eq!(count(&pool, "push_notifications").await, 0);
    }
}

#[testkit::database_test]
async fn a_push_that_is_never_enqueued_is_rescued(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = new_push(PushStatus::InMemory, None);
    let id = push.id;
    store
        .insert_pushes(&[push], std::time::Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(store.rescue_pushes(9, 3).await.unwrap().pending, 1);
    assert_eq!(state_of(&store, id).await, PushState::Pending);
}

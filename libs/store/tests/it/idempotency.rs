//! Idempotency keys: the same request again is the same push, however often and however concurrently it comes.

use std::collections::HashMap;

use std::time::Duration;

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::push::{PushId, PushStatus};
use sqlx::{PgConnection, PgPool};
use store::push::{IdempotencyKey, Inserted, NewPush};
use store::{Kept, Store};
use uuid::Uuid;

use crate::scene::{LONG, count, new_push, until_blocked};

const OWNER: Uuid = Uuid::from_u128(1);

fn keyed(key: &str, request: u8) -> NewPush {
    owned(OWNER, key, request)
}

fn owned(owner: Uuid, key: &str, request: u8) -> NewPush {
    let key = IdempotencyKey {
        owner,
        key: key.to_owned(),
        request: [request; 32],
    };
    new_push(PushStatus::InMemory, Some(key))
}

/// Records a key as another batch does that has not ended yet.
async fn hold_key(batch: &mut PgConnection, key: &str) {
    sqlx::query("INSERT INTO idempotency_keys VALUES ($1, $2, $3, '\\x01', now())")
        .bind(OWNER)
        .bind(key)
        .bind(Uuid::now_v7())
        .execute(batch)
        .await
        .unwrap();
}

#[testkit::database_test]
async fn a_key_that_comes_twice_in_a_batch_is_one_push(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let batch = [
        keyed("a", 1),
        new_push(PushStatus::Pending, None),
        keyed("a", 1),
        keyed("a", 2),
    ];
    let inserted = store.insert_pushes(&batch, LONG).await.unwrap();
    assert_eq!(
        inserted,
        [
            Inserted::New,
            Inserted::New,
            Inserted::Repeated(batch[0].id),
            Inserted::KeyReused
        ]
    );
    assert_eq!(count(&pool, "push_notifications").await, 2);
    assert!(store.find_push(batch[0].id).await.unwrap().is_some());
}

#[testkit::database_test]
async fn a_key_that_comes_again_later_is_the_first_push(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let first = keyed("a", 1);
    let id = first.id;
    assert_eq!(
        store.insert_pushes(&[first], LONG).await.unwrap(),
        [Inserted::New]
    );
    let again = [keyed("b", 1), keyed("a", 1), keyed("a", 7)];
    let inserted = store.insert_pushes(&again, LONG).await.unwrap();
    assert_eq!(
        inserted,
        [Inserted::New, Inserted::Repeated(id), Inserted::KeyReused]
    );
    assert_eq!(count(&pool, "push_notifications").await, 2);
}

#[testkit::database_test]
async fn owners_do_not_meet_each_others_keys(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let batch = [
        owned(Uuid::from_u128(1), "a", 1),
        owned(Uuid::from_u128(2), "a", 2),
    ];
    assert_eq!(
        store.insert_pushes(&batch, LONG).await.unwrap(),
        [Inserted::New; 2]
    );
}

/// Sixteen batches of the same forty keys, each in another order.
#[testkit::database_test]
async fn concurrent_batches_with_the_same_keys_make_one_push_each(pool: PgPool) {
    let keys: Vec<String> = (0..40).map(|n| format!("key-{n}")).collect();
    let batches = (0..16).map(|turn| {
        let store = Store::from_pool(pool.clone());
        let mut keys = keys.clone();
        keys.rotate_left(turn * 7 % 40);
        if turn % 2 == 1 {
            keys.reverse();
        }
        tokio::spawn(async move {
            let batch: Vec<NewPush> = keys.iter().map(|key| keyed(key, 1)).collect();
            let inserted = store
                .insert_pushes(&batch, LONG)
                .await
                .expect("no deadlock, no conflict");
            let answers = batch.iter().zip(inserted).map(|(push, inserted)| match inserted {
                Inserted::New => push.id,
                Inserted::Repeated(first) => first,
                Inserted::KeyReused => panic!("the request is the same"),
            });
            keys.into_iter().zip(answers).collect::<Vec<_>>()
        })
    });
    let mut answers: HashMap<String, PushId> = HashMap::new();
    for batch in batches.collect::<Vec<_>>() {
        for (key, id) in batch.await.unwrap() {
            assert_eq!(
                *answers.entry(key).or_insert(id),
                id,
                "every batch is told the same push"
            );
        }
    }
    assert_eq!(answers.len(), 40);
    assert_eq!(count(&pool, "push_notifications").await, 40);
    assert_eq!(count(&pool, "idempotency_keys").await, 40);
}

/// Both batches hold their first key while they wait for the middle one; each of them then wants the other's first key,
/// unless both go through their keys in one order.
#[testkit::database_test]
async fn batches_with_keys_in_opposite_orders_do_not_wait_for_each_other(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut middle = pool.begin().await.unwrap();
    hold_key(&mut middle, "m").await;
    let unblock = async {
        until_blocked(&pool, 2).await;
        middle.rollback().await.unwrap();
    };
    let (up, down) = (["a", "m", "z"], ["z", "m", "a"]);
    let (up, down) = (up.map(|key| keyed(key, 1)), down.map(|key| keyed(key, 1)));
    let (first, second, ()) = tokio::join!(
        store.insert_pushes(&up, LONG),
        store.insert_pushes(&down, LONG),
        unblock
    );
    let inserted = [first.unwrap(), second.unwrap()].concat();
    let new = inserted.iter().filter(|inserted| **inserted == Inserted::New);
    assert_eq!(new.count(), 3, "{inserted:?}");
}

/// The second batch meets a key whose batch has not ended yet; it must wait for that end instead of guessing it.
#[testkit::database_test]
async fn a_key_whose_first_batch_fails_is_free_again(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut first = pool.begin().await.unwrap();
    hold_key(&mut first, "a").await;
    let fails = async {
        until_blocked(&pool, 1).await;
        first.rollback().await.unwrap();
    };
    let batch = [keyed("a", 1)];
    let (inserted, ()) = tokio::join!(store.insert_pushes(&batch, LONG), fails);
    assert_eq!(inserted.unwrap(), [Inserted::New]);
}

#[testkit::database_test]
async fn keys_are_forgotten_by_age_and_not_more_than_the_limit(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let now = SystemClock.now();
    let aged = |key, hours| NewPush {
        created_at: now - TimeDelta::hours(hours),
        ..keyed(key, 1)
    };
    let batch = [
        aged("fresh", 1),
        aged("old", 30),
        aged("older", 40),
        aged("oldest", 50),
    ];
    store.insert_pushes(&batch, LONG).await.unwrap();
    let cutoff = store.cutoff(now, Duration::from_secs(24 * 3_600)).await.unwrap();

    assert_eq!(store.forget(Kept::PushKeys, cutoff, 2).await.unwrap(), 2);
    let left: Vec<String> = sqlx::query_scalar("SELECT key FROM idempotency_keys ORDER BY created_at")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(left, ["old", "fresh"], "the oldest go first");
    assert_eq!(store.forget(Kept::PushKeys, cutoff, 2).await.unwrap(), 1);
    assert_eq!(store.forget(Kept::PushKeys, cutoff, 2).await.unwrap(), 0);

    assert_eq!(
        store.insert_pushes(&[keyed("old", 9)], LONG).await.unwrap(),
        [Inserted::New]
    );
    assert_eq!(
        count(&pool, "push_notifications").await,
        5,
        "pushes outlive their keys"
    );
}

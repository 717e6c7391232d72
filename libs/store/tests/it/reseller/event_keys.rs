//! Requests that come again: by the caller's own event id, by an `Idempotency-Key`, or by both.

use std::time::Duration;

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use sqlx::PgPool;
use store::webhook::{EventKey, InsertedEvent, NewEvent};
use store::{Kept, Store};
use testkit::subscription_factory::SubscriptionRow;

use crate::reseller::scene::{event, new};
use crate::scene::{LONG, count, until_blocked};

fn key(scope: &str, key: &str, request: u8) -> EventKey {
    EventKey {
        scope: scope.to_owned(),
        key: key.to_owned(),
        request: [request; 32],
    }
}

/// An event with a caller's id and, when there is one, an idempotency key.
fn keyed(id: &str, idempotency: Option<&str>, request: u8) -> NewEvent {
    let mut event = event("domain.created");
    event.keys = vec![key("reseller/acme", id, request)];
    event
        .keys
        .extend(idempotency.map(|text| key("key/k/0", text, request)));
    event
}

async fn insert(store: &Store, events: &[NewEvent]) -> Vec<InsertedEvent> {
    store.insert_events(events, true, LONG).await.unwrap()
}

/// Every recorded key stands for an event that is stored.
async fn no_key_without_its_event(pool: &PgPool) {
    let orphans: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM event_keys k WHERE NOT EXISTS (SELECT FROM events e WHERE e.id = k.event)",
    )
    .fetch_one(pool)
    .await
    .unwrap();
    assert_eq!(orphans, 0);
}

#[testkit::database_test]
async fn a_repeated_request_returns_the_first_event_and_stores_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    SubscriptionRow::active().make(&pool).await;
    let first = keyed("order-1", Some("a"), 1);
    assert_eq!(
        new(&insert(&store, std::slice::from_ref(&first)).await[0]).len(),
        1
    );
    for again in [
        keyed("order-1", Some("a"), 1),
        keyed("order-1", None, 1),
        keyed("order-1", Some("b"), 1),
        keyed("order-2", Some("a"), 1),
    ] {
        let answers = insert(&store, &[again]).await;
        assert_eq!(answers, [InsertedEvent::Repeated(first.id)]);
    }
    assert_eq!(count(&pool, "events").await, 1);
    assert_eq!(count(&pool, "notifications").await, 1);
    assert_eq!(
        count(&pool, "event_keys").await,
        2,
        "keys of repetitions are not kept"
    );
}

#[testkit::database_test]
async fn a_key_with_another_request_is_refused_and_named(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    insert(&store, &[keyed("order-1", Some("a"), 1)]).await;
    for (other, place) in [
        (keyed("order-1", None, 2), 0),
        (keyed("order-2", Some("a"), 2), 1),
        (keyed("order-1", Some("b"), 2), 0),
    ] {
        assert_eq!(insert(&store, &[other]).await, [InsertedEvent::KeyReused(place)]);
    }
    assert_eq!(count(&pool, "events").await, 1);
    assert_eq!(count(&pool, "event_keys").await, 2);
    let free = keyed("order-2", Some("b"), 3);
    assert!(
        new(&insert(&store, &[free]).await[0]).is_empty(),
        "keys of what was refused are free"
    );
}

#[testkit::database_test]
async fn two_keys_that_stand_for_two_events_are_refused(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    insert(&store, &[keyed("order-1", None, 1)]).await;
    insert(&store, &[keyed("order-2", Some("b"), 1)]).await;
    let both = keyed("order-1", Some("b"), 1);
    assert_eq!(insert(&store, &[both]).await, [InsertedEvent::KeyReused(1)]);
}

#[testkit::database_test]
async fn the_same_key_of_another_scope_is_another_key(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut other = event("domain.created");
    other.keys = vec![key("reseller/acme2", "order-1", 2)];
    for event in [keyed("order-1", None, 1), other] {
        assert!(new(&insert(&store, &[event]).await[0]).is_empty());
    }
}

#[testkit::database_test]
async fn within_a_batch_the_first_with_a_key_is_stored(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let batch = [
        keyed("z", None, 1),
        event("domain.created"),
        keyed("a", Some("k"), 2),
        keyed("z", None, 1),
        keyed("z", None, 9),
        keyed("b", Some("k"), 2),
    ];
    let answers = insert(&store, &batch).await;
    for place in [0, 1, 2] {
        assert!(matches!(answers[place], InsertedEvent::New(_)), "{place}");
    }
    assert_eq!(answers[3], InsertedEvent::Repeated(batch[0].id));
    assert_eq!(answers[4], InsertedEvent::KeyReused(0));
    assert_eq!(answers[5], InsertedEvent::Repeated(batch[2].id));
    assert_eq!(count(&pool, "events").await, 3);
    no_key_without_its_event(&pool).await;
}

#[testkit::database_test]
async fn a_repetition_within_a_batch_of_a_repetition_is_one_of_the_stored_event(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let first = keyed("a", None, 1);
    insert(&store, std::slice::from_ref(&first)).await;
    // The second and the third share a key that is new, and the second is a repetition.
    let batch = [keyed("a", Some("k"), 1), keyed("b", Some("k"), 1)];
    let answers = insert(&store, &batch).await;
    assert_eq!(
        answers,
        [
            InsertedEvent::Repeated(first.id),
            InsertedEvent::Repeated(first.id)
        ]
    );
    no_key_without_its_event(&pool).await;
}

#[testkit::database_test]
async fn what_was_handed_in_as_one_is_stored_as_one_or_not_at_all(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    SubscriptionRow::active().make(&pool).await;
    insert(&store, &[keyed("taken", None, 1)]).await;
    let batch = [
        keyed("new", None, 2),
        keyed("taken", None, 2),
        event("domain.created"),
    ];
    let answers = store.insert_events_together(&batch, true, LONG).await.unwrap();
    assert_eq!(answers[1], InsertedEvent::KeyReused(0));
    assert_eq!(count(&pool, "events").await, 1);
    assert_eq!(count(&pool, "notifications").await, 1);
    assert_eq!(count(&pool, "event_keys").await, 1);
    let batch = [
        keyed("new", None, 2),
        keyed("taken", None, 1),
        event("domain.created"),
    ];
    let answers = store.insert_events_together(&batch, true, LONG).await.unwrap();
    assert!(matches!(answers[1], InsertedEvent::Repeated(_)), "{answers:?}");
    assert_eq!(count(&pool, "events").await, 3);
    no_key_without_its_event(&pool).await;
}

#[testkit::database_test]
async fn writers_with_the_same_keys_in_opposite_order_store_each_once(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    SubscriptionRow::active().make(&pool).await;
    for round in 0..20 {
        let batch = |reversed: bool| {
            let mut events: Vec<_> = (0..25)
                .map(|n| keyed(&format!("{round}-{n}"), Some(&format!("k-{round}-{}", 24 - n)), 1))
                .collect();
            if reversed {
                events.reverse();
            }
            events
        };
        let batches = [batch(false), batch(true), batch(false), batch(true)];
        let answers = insert_at_once(&store, batches).await;
        let stored = answers
            .iter()
            .flatten()
            .filter(|answer| matches!(answer, InsertedEvent::New(_)));
        assert_eq!(stored.count(), 25, "round {round}");
        let refused = answers
            .iter()
            .flatten()
            .any(|answer| matches!(answer, InsertedEvent::KeyReused(_)));
        assert!(!refused, "round {round}");
    }
    assert_eq!(count(&pool, "events").await, 500);
    assert_eq!(count(&pool, "notifications").await, 500);
    no_key_without_its_event(&pool).await;
}

/// All batches at once; a deadlock would make one of them fail.
async fn insert_at_once(store: &Store, batches: [Vec<NewEvent>; 4]) -> Vec<Vec<InsertedEvent>> {
    let writers = batches.map(|batch| {
        let store = store.clone();
        tokio::spawn(async move { insert(&store, &batch).await })
    });
    let mut answers = Vec::new();
    for writer in writers {
        answers.push(writer.await.unwrap());
    }
    answers
}

#[testkit::database_test]
async fn a_writer_waits_for_one_with_its_key_and_stores_when_that_one_fails(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let first = keyed("a", None, 1);
    let mut other = pool.begin().await.unwrap();
    sqlx::query("INSERT INTO event_keys VALUES ('reseller/acme', 'a', gen_random_uuid(), '\\x01', now())")
        .execute(&mut *other)
        .await
        .unwrap();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { insert(&store, &[first]).await }
    });
    until_blocked(&pool, 1).await;
    other.rollback().await.unwrap();
    assert!(matches!(waiting.await.unwrap()[0], InsertedEvent::New(_)));
}

#[testkit::database_test]
async fn keys_are_forgotten_when_they_are_old_and_no_sooner(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let now = SystemClock.now();
    let mut old = keyed("old", None, 1);
    old.created_at = now - TimeDelta::days(40);
    insert(&store, &[old, keyed("young", None, 1)]).await;
    let cutoff = store.cutoff(now, Duration::from_secs(35 * 86_400)).await.unwrap();
    assert_eq!(store.forget(Kept::EventKeys, cutoff, 0).await.unwrap(), 0);
    assert_eq!(store.forget(Kept::EventKeys, cutoff, 100).await.unwrap(), 1);
    let left: Vec<String> = sqlx::query_scalar("SELECT key FROM event_keys")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(left, ["young"]);
}

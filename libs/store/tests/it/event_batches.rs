//! The events of one request: all of them or none.

use domain::clock::{Clock as _, SystemClock};
use sqlx::PgPool;
use store::Store;
use store::webhook::{EventKey, InsertedEvent, NewEvent};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::resting::two_idle;
use crate::scene::{LONG, count};

/// An event of the reseller `acme`.
fn event(event_type: &str) -> NewEvent {
    let (id, now) = (Uuid::now_v7(), SystemClock.now());
    NewEvent {
        id,
        event_id: id.to_string(),
        reseller_id: "acme".to_owned(),
        event_type: event_type.to_owned(),
        body: domain::event::body(&id.to_string(), event_type, now, "{}"),
        occurred_at: now,
        created_at: now,
        traceparent: None,
        keys: Vec::new(),
    }
}

/// An event that its caller calls `name`; another `content` makes another event of it.
fn named(name: &str, content: u8) -> NewEvent {
    NewEvent {
        keys: vec![EventKey {
            scope: "reseller/acme".to_owned(),
            key: name.to_owned(),
            request: [content; 32],
        }],
        ..event("domain.created")
    }
}

async fn rows(pool: &PgPool) -> [i64; 3] {
    [
        count(pool, "events").await,
        count(pool, "notifications").await,
        count(pool, "event_keys").await,
    ]
}

#[testkit::database_test]
async fn a_batch_is_stored_with_its_notifications_and_answered_in_its_order(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    SubscriptionRow::active().make(&pool).await;
    let events = [named("a", 1), event("domain.renewed"), named("b", 1)];
    let inserted = store.insert_events_together(&events, true, LONG).await.unwrap();
    assert!(
        inserted
            .iter()
            .all(|one| matches!(one, InsertedEvent::New(fanned) if fanned.len() == 1)),
        "{inserted:?}"
    );
    assert_eq!(rows(&pool).await, [3, 3, 2]);
    let again = [named("b", 1), named("c", 1)];
    let answers = store.insert_events_together(&again, true, LONG).await.unwrap();
    assert_eq!(answers[0], InsertedEvent::Repeated(events[2].id));
    assert!(matches!(answers[1], InsertedEvent::New(_)));
}

#[testkit::database_test]
async fn a_key_of_another_request_keeps_all_of_them_out_with_their_keys(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    SubscriptionRow::active().make(&pool).await;
    store.insert_events(&[named("a", 1)], true, LONG).await.unwrap();
    let batch = [named("b", 1), named("a", 2), named("c", 1)];
    let answers = store.insert_events_together(&batch, true, LONG).await.unwrap();
    assert_eq!(answers[1], InsertedEvent::KeyReused(0));
    assert_eq!(rows(&pool).await, [1, 1, 1]);
}

#[testkit::database_test]
async fn a_name_that_is_given_twice_with_different_content_keeps_all_of_them_out(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let batch = [named("a", 1), named("a", 2)];
    let answers = store.insert_events_together(&batch, true, LONG).await.unwrap();
    assert!(
        answers
            .iter()
            .any(|one| matches!(one, InsertedEvent::KeyReused(_))),
        "{answers:?}"
    );
    assert_eq!(rows(&pool).await, [0, 0, 0]);
}

#[testkit::database_test]
async fn two_batches_with_the_same_names_at_once_are_one(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let of = |order: &[&str]| order.iter().map(|name| named(name, 1)).collect::<Vec<_>>();
    let (forth, back) = (of(&["a", "b", "c"]), of(&["c", "b", "a"]));
    let (one, other) = tokio::join!(
        store.insert_events_together(&forth, true, LONG),
        store.insert_events_together(&back, true, LONG),
    );
    let new = |answers: Vec<InsertedEvent>| {
        let new = answers.iter().filter(|one| matches!(one, InsertedEvent::New(_)));
        new.count()
    };
    assert_eq!(new(one.unwrap()) + new(other.unwrap()), 3);
    assert_eq!(rows(&pool).await, [3, 0, 3]);
}

#[testkit::database_test]
async fn the_connection_of_a_batch_rests_for_the_next(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for batch in [[event("domain.created")], [named("a", 1)]] {
        two_idle(&pool).await;
        store.insert_events_together(&batch, true, LONG).await.unwrap();
        assert_eq!(pool.num_idle(), 1, "{batch:?}");
    }
}

#[testkit::database_test]
async fn an_event_is_recalled_by_any_of_its_keys_and_only_with_the_same_request(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let stored = named("a", 1);
    store
        .insert_events(std::slice::from_ref(&stored), true, LONG)
        .await
        .unwrap();
    let recall = async |events: &[NewEvent]| {
        let keys: Vec<EventKey> = events.iter().flat_map(|event| event.keys.clone()).collect();
        store.recall_event(&keys).await.unwrap()
    };
    assert_eq!(recall(&[named("x", 1), named("a", 1)]).await, Some(stored.id));
    assert_eq!(recall(&[named("a", 2)]).await, None);
    assert_eq!(recall(&[]).await, None);
}

#[testkit::database_test]
async fn an_event_is_read_with_its_notifications_and_no_others(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscriptions = [
        SubscriptionRow::active().make(&pool).await,
        SubscriptionRow::active().paused().make(&pool).await,
    ];
    // Of the same millisecond, so that their notifications lie between the same bounds.
    let first = event("domain.created");
    let mut second = event("domain.created");
    let mut bytes = *first.id.as_bytes();
    bytes[15] ^= 1;
    second.id = Uuid::from_bytes(bytes);
    store
        .insert_events(&[first.clone(), second], true, LONG)
        .await
        .unwrap();
    let view = store.find_event(first.id).await.unwrap().unwrap();
    let notified: Vec<Uuid> = view.notifications.iter().map(|one| one.subscription_id).collect();
    assert_eq!(notified, subscriptions);
    assert_eq!(
        view.notifications
            .iter()
            .map(|one| one.held_back.paused_by.is_some())
            .collect::<Vec<_>>(),
        [false, true]
    );
    assert_eq!(view.body_bytes as usize, first.body.len());
    assert!(store.find_event(Uuid::now_v7()).await.unwrap().is_none());
    assert!(view.created_at <= SystemClock.now());
}

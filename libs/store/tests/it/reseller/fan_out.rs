//! Which subscriptions an event becomes notifications of, and in which state those begin.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use domain::clock::{Clock as _, SystemClock};
use domain::notification::{NotificationId, NotificationStatus};
use domain::subscription::{Command, EventFilter, SubscriptionState};
use sqlx::PgPool;
use store::Store;
use store::webhook::{CommandOutcome, NewEvent};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{event, new, row};
use crate::scene::{LONG, act, count};

/// Stores one event; returns whom it goes to.
async fn fan_out(store: &Store, event: NewEvent) -> BTreeSet<Uuid> {
    let inserted = store.insert_events(&[event], true, LONG).await.unwrap();
    new(&inserted[0]).iter().map(|one| one.subscription_id).collect()
}

#[testkit::database_test]
async fn an_event_goes_to_those_whose_filter_lets_it_through_as_the_domain_says(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let filters: [&[&str]; 9] = [
        &["*"],
        &["domain.*"],
        &["domain.transfer.*"],
        &["domain.created"],
        &["domain.transfer.completed"],
        &["contact.*", "domain.created"],
        &["contact.updated", "contact.*"],
        &["domains.*"],
        &["domain.created", "domain.*", "*"],
    ];
    let mut subscriptions = Vec::new();
    for filter in filters {
        let id = SubscriptionRow::active().event_types(filter).make(&pool).await;
        subscriptions.push((id, filter));
    }
    for event_type in [
        "domain.created",
        "domain.transfer.completed",
        "domain.transfer.started",
        "domains.created",
        "contact.updated",
        "host.deleted",
        "domain.created.again",
    ] {
        let lets = |entry: &&str| EventFilter::parse(entry).unwrap().matches(event_type);
        let expected: BTreeSet<Uuid> = subscriptions
            .iter()
            .filter(|(_, filter)| filter.iter().any(&lets))
            .map(|(id, _)| *id)
            .collect();
        assert_eq!(fan_out(&store, event(event_type)).await, expected, "{event_type}");
    }
}

#[testkit::database_test]
async fn only_subscriptions_of_the_reseller_that_get_anything_are_notified(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut expected = BTreeSet::new();
    for state in SubscriptionState::ALL {
        let id = SubscriptionRow::in_state(state).make(&pool).await;
        if state.receives() {
            expected.insert(id);
        }
        SubscriptionRow::in_state(state).deleted().make(&pool).await;
        SubscriptionRow::in_state(state)
            .reseller("acme2")
            .make(&pool)
            .await;
    }
    assert_eq!(fan_out(&store, event("domain.created")).await, expected);
    assert_eq!(count(&pool, "notifications").await, 2);
}

#[testkit::database_test]
async fn an_event_that_matches_nothing_is_stored_all_the_same(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    SubscriptionRow::active()
        .event_types(&["contact.*"])
        .make(&pool)
        .await;
    let event = event("domain.created");
    assert!(fan_out(&store, event.clone()).await.is_empty());
    let (body, stored): (String, String) = sqlx::query_as("SELECT body, event_id FROM events WHERE id = $1")
        .bind(event.id)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!((body, stored), (event.body, event.event_id));
    assert_eq!(count(&pool, "notifications").await, 0);
}

/// What is stored of the subscriptions that an event missed.
async fn missed(store: &Store, event: Uuid) -> Option<BTreeSet<(Uuid, String)>> {
    let view = store.find_event(event).await.unwrap().unwrap();
    let missed = view.missed?.into_iter();
    Some(missed.map(|one| (one.id, one.miss.to_string())).collect())
}

#[testkit::database_test]
async fn an_event_that_matches_nothing_remembers_whom_it_missed_and_why(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let filtered = SubscriptionRow::active().event_types(&["contact.*"]);
    let filtered = filtered.paused().make(&pool).await;
    let unverified = SubscriptionRow::in_state(SubscriptionState::PendingVerification);
    let unverified = unverified.make(&pool).await;
    let deactivated = SubscriptionRow::in_state(SubscriptionState::Deactivated);
    let deactivated = deactivated.event_types(&["contact.*"]).make(&pool).await;
    // What it wants would wait for its challenge, so that this is no reason.
    let moving = SubscriptionRow::active()
        .event_types(&["host.*"])
        .make(&pool)
        .await;
    let at = act(SystemClock.now() + TimeDelta::hours(1));
    let moves = store.command_subscription("acme", moving, Command::MoveEndpoint, at);
    assert!(matches!(moves.await, Ok(CommandOutcome::Done(_))));
    SubscriptionRow::active().deleted().make(&pool).await;
    SubscriptionRow::active().reseller("acme2").make(&pool).await;
    let one = event("domain.created");
    let two = event("contact.updated");
    let batch = [one.clone(), two.clone()];
    let inserted = store.insert_events(&batch, true, LONG).await.unwrap();
    assert_eq!((new(&inserted[0]).len(), new(&inserted[1]).len()), (0, 1));
    // What they become later changes nothing about that time.
    sqlx::query("UPDATE subscriptions SET state = 'ACTIVE', event_types = '{*}', paused_at = NULL")
        .execute(&pool)
        .await
        .unwrap();
    let filter = "its filter did not let the type through";
    let expected = BTreeSet::from([
        (
            filtered,
            format!("{filter} (it was also paused, which alone misses nothing)"),
        ),
        (unverified, "its endpoint was not verified".to_owned()),
        (deactivated, format!("{filter}, and it was deactivated")),
        (moving, filter.to_owned()),
    ]);
    assert_eq!(missed(&store, one.id).await, Some(expected));
    assert_eq!(missed(&store, two.id).await, None, "it became a notification");
}

#[testkit::database_test]
async fn what_comes_while_an_endpoint_moves_waits_until_it_has_answered(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let now = SystemClock.now() + TimeDelta::hours(1);
    let command = async |id, command, minutes| {
        let at = act(now + TimeDelta::minutes(minutes));
        let done = store.command_subscription("acme", id, command, at).await;
        assert!(matches!(done, Ok(CommandOutcome::Done(_))), "{done:?}");
    };
    let moved = SubscriptionRow::active().make(&pool).await;
    command(moved, Command::MoveEndpoint, 0).await;
    // Asked once more it is still one that moves.
    command(moved, Command::Verify, 20).await;
    // One that has never answered is not, wherever it moves.
    let never = SubscriptionRow::in_state(SubscriptionState::PendingVerification);
    let never = never.make(&pool).await;
    command(never, Command::MoveEndpoint, 0).await;

    let event = event("domain.created");
    let inserted = store.insert_events(&[event], true, LONG).await.unwrap();
    let [only] = new(&inserted[0]) else {
        panic!("{inserted:?}")
    };
    assert_eq!(
        (only.subscription_id, only.status),
        (moved, NotificationStatus::Pending)
    );
    let waiting = row(&pool, only.id).await;
    assert_eq!(
        (waiting.status.as_str(), waiting.reason.as_deref()),
        ("PENDING", Some("UNVERIFIED"))
    );
    let promote = async || {
        let promoting = store.promote_first_attempts(now, None, &[], 10, 10, LONG);
        promoting.await.unwrap().notifications.len()
    };
    assert_eq!(promote().await, 0);
    sqlx::query("UPDATE subscriptions SET state = 'ACTIVE', state_reason = 'VERIFIED' WHERE id = $1")
        .bind(moved)
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(promote().await, 1);
}

#[testkit::database_test]
async fn an_event_of_a_reseller_without_subscriptions_says_so(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let one = event("domain.created");
    assert!(fan_out(&store, one.clone()).await.is_empty());
    assert_eq!(missed(&store, one.id).await, Some(BTreeSet::new()));
}

#[testkit::database_test]
async fn notifications_are_queued_unless_the_queue_is_full_or_the_subscription_is_paused(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let active = SubscriptionRow::active().make(&pool).await;
    let paused = SubscriptionRow::active().paused().make(&pool).await;
    for (queued, expected) in [
        (true, NotificationStatus::InMemory),
        (false, NotificationStatus::Pending),
    ] {
        let one = event("domain.created");
        let inserted = store
            .insert_events(std::slice::from_ref(&one), queued, LONG)
            .await
            .unwrap();
        for fanned in new(&inserted[0]) {
            assert_eq!(fanned.id, NotificationId::of(one.id, fanned.subscription_id));
            let status = if fanned.subscription_id == paused {
                NotificationStatus::Pending
            } else {
                expected
            };
            assert_eq!(fanned.status, status);
            let row = row(&pool, fanned.id).await;
            assert_eq!((row.status, row.attempts), (status.to_string(), 0));
        }
        assert_eq!(new(&inserted[0]).len(), 2, "{active} and {paused}");
    }
}

#[testkit::database_test]
async fn every_event_of_a_batch_gets_its_own_answer_in_the_order_of_the_batch(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    SubscriptionRow::active()
        .event_types(&["domain.*"])
        .make(&pool)
        .await;
    SubscriptionRow::active().event_types(&["*"]).make(&pool).await;
    let types = [
        "domain.created",
        "contact.updated",
        "domain.deleted",
        "host.created",
    ];
    let events: Vec<NewEvent> = (0..100).map(|n| event(types[n % types.len()])).collect();
    let inserted = store.insert_events(&events, true, LONG).await.unwrap();
    assert_eq!(inserted.len(), events.len());
    for (event, inserted) in events.iter().zip(&inserted) {
        let expected = if event.event_type.starts_with("domain.") {
            2
        } else {
            1
        };
        assert_eq!(new(inserted).len(), expected, "{}", event.event_type);
        for fanned in new(inserted) {
            assert_eq!(fanned.id, NotificationId::of(event.id, fanned.subscription_id));
        }
    }
    assert_eq!(count(&pool, "notifications").await, 150);
}

#[testkit::database_test]
async fn an_empty_batch_stores_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    assert!(store.insert_events(&[], true, LONG).await.unwrap().is_empty());
    assert!(
        store
            .insert_events_together(&[], true, LONG)
            .await
            .unwrap()
            .is_empty()
    );
}

#[testkit::database_test]
async fn a_fan_out_that_fails_leaves_nothing_behind(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    SubscriptionRow::active().make(&pool).await;
    let (first, mut twice) = (event("domain.created"), event("domain.created"));
    twice.id = first.id;
    let batch = [first, twice];
    assert!(store.insert_events(&batch, true, LONG).await.is_err());
    assert!(store.insert_events_together(&batch, true, LONG).await.is_err());
    for table in ["events", "notifications", "event_keys"] {
        assert_eq!(count(&pool, table).await, 0, "{table}");
    }
}

//! What is accepted, and what becomes of it at once.

use std::collections::HashSet;

use broker::{Kind, Queue};
use domain::notification::NotificationId;
use domain::subscription::SubscriptionState;
use serde_json::{Value, json};
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};
use uuid::Uuid;

use crate::events::{body_of, count, event, event_location, event_with};
use crate::running::Running;

#[testkit::test]
async fn an_event_is_stored_with_its_notifications_before_the_answer_and_published_after_it(
    it: Installation,
) {
    let service = Running::ready(&it).await;
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer = service
        .post_event(&event())
        .header("traceparent", trace)
        .send()
        .await
        .unwrap();
    let id = event_location(&answer);
    assert_eq!(count(&it.pool, "notifications").await, 1);
    assert!(answer.bytes().await.unwrap().is_empty());
    let broker = it.broker();
    let mut consumer = broker.consume(Queue::ResellerReady, 1);
    let delivery = consumer.next_batch(1).await.unwrap().remove(0);
    let expected = NotificationId::of(id, subscription).uuid();
    assert_eq!(
        (
            delivery.envelope.kind,
            delivery.envelope.id,
            delivery.envelope.group
        ),
        (Kind::Notification, expected, Some(subscription))
    );
    assert_eq!(delivery.envelope.traceparent.as_deref(), Some(trace));
    delivery.receipt.ack().await;
    broker.close().await;
}

#[testkit::test]
async fn only_subscriptions_that_match_and_receive_are_notified(it: Installation) {
    let service = Running::ready(&it).await;
    let pool = &it.pool;
    let all = SubscriptionRow::active().make(pool).await;
    let contacts = SubscriptionRow::active()
        .event_types(&["contact.*"])
        .make(pool)
        .await;
    let paused = SubscriptionRow::active().paused().make(pool).await;
    SubscriptionRow::active()
        .event_types(&["domain.*"])
        .make(pool)
        .await;
    SubscriptionRow::active().reseller("other").make(pool).await;
    SubscriptionRow::active().deleted().make(pool).await;
    for state in [
        SubscriptionState::PendingVerification,
        SubscriptionState::Deactivated,
    ] {
        SubscriptionRow::in_state(state).make(pool).await;
    }
    let view = service
        .look_up_event(service.accepted_event(&event()).await)
        .await;
    let notified: HashSet<Uuid> = view["notifications"]
        .as_array()
        .unwrap()
        .iter()
        .map(|notification| serde_json::from_value(notification["subscriptionId"].clone()).unwrap())
        .collect();
    assert_eq!(notified, HashSet::from([all, contacts, paused]));
    for notification in view["notifications"].as_array().unwrap() {
        let waits = notification["subscriptionId"] == paused.to_string();
        assert_eq!(
            notification["status"],
            if waits { "PENDING" } else { "IN_MEMORY" },
            "{notification}"
        );
        let told = (&notification["reason"], &notification["pausedBy"]);
        let expected = if waits {
            (json!("PAUSED"), json!("RESELLER"))
        } else {
            (Value::Null, Value::Null)
        };
        assert_eq!(told, (&expected.0, &expected.1), "{notification}");
    }
}

#[testkit::test]
async fn an_event_that_matches_nothing_is_stored_all_the_same(it: Installation) {
    let service = Running::ready(&it).await;
    let id = service.accepted_event(&event()).await;
    let view = service.look_up_event(id).await;
    assert_eq!(view["notifications"], json!([]));
    assert_eq!(view["eventId"], id.to_string());
}

#[testkit::test]
async fn data_reaches_the_body_to_the_byte(it: Installation) {
    let service = Running::ready(&it).await;
    let data = "{ \"domain\" : {\"expiresAt\":\"2026-12-21T12:00:00Z\",\"name\":\"\\u0000\\u00e4ä\"},\n\"daysLeft\":12345678901234567890, \"autoRenew\" :false }";
    let body = format!(
        r#"{{"eventId":"e-1","occurredAt":"2026-11-21T13:00:00+01:00","data":{data},"resellerId":"acme","type":"domain.expiring"}}"#
    );
    let id = event_location(&service.post_written(&body).send().await.unwrap());
    assert_eq!(
        body_of(&it.pool, id).await,
        format!(
            r#"{{"id":"e-1","type":"domain.expiring","timestamp":"2026-11-21T12:00:00.000Z","data":{data}}}"#
        )
    );
}

#[testkit::test]
async fn without_a_name_and_a_time_of_its_own_an_event_has_those_of_the_service(it: Installation) {
    let service = Running::ready(&it).await;
    let id = service.accepted_event(&event()).await;
    let view = service.look_up_event(id).await;
    let body: Value = serde_json::from_str(&body_of(&it.pool, id).await).unwrap();
    assert_eq!(body["id"], id.to_string());
    assert_eq!(view["occurredAt"], view["createdAt"]);
    let timestamp = body["timestamp"].as_str().unwrap();
    let millis = "2026-11-21T12:00:00.000Z";
    assert!(
        timestamp.len() == millis.len() && timestamp.ends_with('Z'),
        "{timestamp}"
    );
}

#[testkit::test]
async fn every_type_of_the_catalogue_is_accepted_with_its_example(it: Installation) {
    let service = Running::ready(&it).await;
    let catalogue: Value = service
        .get("/event-types")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let types = catalogue["eventTypes"].as_array().unwrap();
    assert!(types.len() >= 30);
    for event_type in types {
        let event = event_with(json!({"type": event_type["name"], "data": event_type["example"]}));
        service.accepted_event(&event).await;
    }
}

#[testkit::test]
async fn everything_accepted_at_once_gets_into_the_queue(it: Installation) {
    let service = Running::ready(&it).await;
    SubscriptionRow::active().make(&it.pool).await;
    SubscriptionRow::active().make(&it.pool).await;
    let requests = (0..100).map(|_| service.post_event(&event()).send());
    let ids: HashSet<Uuid> = futures::future::join_all(requests)
        .await
        .into_iter()
        .map(|answer| event_location(&answer.unwrap()))
        .collect();
    assert_eq!((ids.len(), count(&it.pool, "events").await), (100, 100));
    let broker = it.broker();
    eventually("200 messages in the queue", async || {
        (broker.depth(Queue::ResellerReady).await.ok()?.messages == 200).then_some(())
    })
    .await;
    broker.close().await;
}

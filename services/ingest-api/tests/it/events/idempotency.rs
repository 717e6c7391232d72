//! The same event twice.

use domain::key::Role;
use serde_json::json;
use testkit::Installation;
use testkit::subscription_factory::SubscriptionRow;

use crate::events::{count, event, event_location, event_with, key_with};
use crate::running::{Running, problem};

const HEADER: &str = "idempotency-key";

#[testkit::test]
async fn an_event_id_that_comes_again_gets_the_first_answer_and_stores_nothing(it: Installation) {
    let service = Running::ready(&it).await;
    SubscriptionRow::active().make(&it.pool).await;
    let named = event_with(json!({"eventId": "e-1"}));
    let first = service.post_event(&named).send().await.unwrap();
    assert!(!first.headers().contains_key("idempotent-replayed"));
    // Whichever key it comes with: the id is the reseller's.
    let key = key_with(&it, Role::Admin).await;
    let again = service.request("POST", "/events").bearer_auth(&key).json(&named);
    let again = again.send().await.unwrap();
    assert_eq!(again.headers()["idempotent-replayed"], "true");
    assert_eq!(event_location(&first), event_location(&again));
    let other = event_with(json!({"eventId": "e-1", "resellerId": "other"}));
    assert_ne!(event_location(&first), service.accepted_event(&other).await);
    assert_eq!(count(&it.pool, "events").await, 2);
    assert_eq!(count(&it.pool, "notifications").await, 1);
}

#[testkit::test]
async fn an_event_id_that_comes_with_other_content_is_refused(it: Installation) {
    let service = Running::ready(&it).await;
    service
        .accepted_event(&event_with(json!({"eventId": "e-1"})))
        .await;
    for other in [
        json!({"eventId": "e-1", "data": {"contact": {"id": "contact-43"}}}),
        json!({"eventId": "e-1", "occurredAt": "2026-01-01T00:00:00Z"}),
        json!({"eventId": "e-1", "type": "contact.updated", "data": {"contact": {"id": "c"}, "changed": []}}),
    ] {
        let answer = service.post_event(&event_with(other)).send().await.unwrap();
        let problem = problem(answer, 422, "event-id-reused").await;
        assert_eq!(problem["errors"][0]["field"], "eventId");
    }
    assert_eq!(count(&it.pool, "events").await, 1);
}

#[testkit::test]
async fn an_idempotency_key_stands_for_one_body_of_one_caller(it: Installation) {
    let service = Running::ready(&it).await;
    let first = service
        .post_event(&event())
        .header(HEADER, "a")
        .send()
        .await
        .unwrap();
    let again = service
        .post_event(&event())
        .header(HEADER, "a")
        .send()
        .await
        .unwrap();
    assert_eq!(event_location(&first), event_location(&again));
    assert_eq!(again.headers()["idempotent-replayed"], "true");
    let other = service.post_event(&event_with(json!({"resellerId": "other"})));
    let answer = other.header(HEADER, "a").send().await.unwrap();
    problem(answer, 422, "idempotency-key-reused").await;
    let key = key_with(&it, Role::Ingest).await;
    let request = service
        .request("POST", "/events")
        .bearer_auth(&key)
        .json(&event());
    let elsewhere = request.header(HEADER, "a").send().await.unwrap();
    assert_ne!(event_location(&first), event_location(&elsewhere));
    assert_eq!(count(&it.pool, "events").await, 2);
}

#[testkit::test]
async fn of_many_simultaneous_requests_one_is_stored_and_all_are_answered_alike(it: Installation) {
    let service = Running::ready(&it).await;
    let named = event_with(json!({"eventId": "e-1"}));
    let requests = (0..32).map(|_| service.post_event(&named).send());
    let answers = futures::future::join_all(requests).await;
    let mut ids: Vec<_> = answers
        .iter()
        .map(|answer| event_location(answer.as_ref().unwrap()))
        .collect();
    ids.dedup();
    assert_eq!((ids.len(), count(&it.pool, "events").await), (1, 1));
}

#[testkit::test]
async fn the_first_answer_stands_when_the_event_would_be_refused_by_now(it: Installation) {
    let service = Running::ready(&it).await;
    let named = event_with(json!({"eventId": "e-1"}));
    let by_name = service.accepted_event(&named).await;
    let keyed = service
        .post_event(&event())
        .header(HEADER, "a")
        .send()
        .await
        .unwrap();
    let batch = service.post_batch(&[named.clone(), event()]).header(HEADER, "b");
    let batch: serde_json::Value = batch.send().await.unwrap().json().await.unwrap();
    let admin = key_with(&it, Role::Admin).await;
    let retired = service
        .request("DELETE", "/event-types/contact.deleted")
        .bearer_auth(&admin)
        .send()
        .await
        .unwrap();
    assert_eq!(retired.status().as_u16(), 204);
    let answer = service.post_event(&event()).send().await.unwrap();
    problem(answer, 422, "validation").await;
    assert_eq!(service.accepted_event(&named).await, by_name);
    let again = service
        .post_event(&event())
        .header(HEADER, "a")
        .send()
        .await
        .unwrap();
    assert_eq!(event_location(&keyed), event_location(&again));
    let again = service.post_batch(&[named, event()]).header(HEADER, "b");
    let again: serde_json::Value = again.send().await.unwrap().json().await.unwrap();
    for place in 0..2 {
        assert_eq!(
            again["events"][place]["id"], batch["events"][place]["id"],
            "{again}"
        );
    }
    assert_eq!(count(&it.pool, "events").await, 3);
}

//! What is accepted, and what becomes of it at once.

use broker::Queue;
use serde_json::json;
use testkit::{Installation, eventually};

use crate::running::{Running, location, push, stored};

#[testkit::test]
async fn a_push_is_stored_before_the_answer_and_published_after_it(it: Installation) {
    let service = Running::ready(&it).await;
    let answer = service.post(&push()).send().await.unwrap();
    let id = location(&answer);
    assert_eq!(stored(&it.pool).await, 1);
    assert!(answer.bytes().await.unwrap().is_empty());
    assert_eq!(service.look_up(id).await["status"], "IN_MEMORY");
    let broker = it.broker();
    let mut consumer = broker.consume(Queue::PushReady, 1);
    let delivery = consumer.next_batch(1).await.unwrap().remove(0);
    assert_eq!(delivery.envelope.id, id.uuid());
    delivery.receipt.ack().await;
    broker.close().await;
}

#[testkit::test]
async fn a_push_with_a_cron_expression_waits_for_its_window(it: Installation) {
    let service = Running::ready(&it).await;
    let mut body = push();
    body["cronExpression"] = "0 0 12 L * ?".into();
    let view = service.look_up(service.accepted(&body).await).await;
    assert_eq!(view["status"], "SCHEDULED");
    assert_eq!(view["cronExpression"], "0 0 12 L * ?");
    let due = view["nextAttemptAt"].as_str().unwrap();
    assert!(due.contains("T12:00:00"), "{due}");
    assert!(
        view["explanation"]
            .as_str()
            .unwrap()
            .starts_with("Waits for its sending window")
    );
}

#[testkit::test]
async fn every_json_content_type_and_a_sparse_body_are_accepted(it: Installation) {
    let service = Running::ready(&it).await;
    let sparse = json!({"platform": "ANDROID", "pushKey": "k", "message": "m", "unknown": [1, 2]});
    for content_type in [
        "application/json",
        "Text/JSON",
        "application/vnd.example.push+json; charset=UTF-8",
    ] {
        let request = service.request("POST", "/push").bearer_auth(&service.key);
        let request = request
            .header("content-type", content_type)
            .header("prefer", "handling=lenient")
            .body(sparse.to_string());
        let view = service.look_up(location(&request.send().await.unwrap())).await;
        assert!(
            view["messagePrototypeKey"].is_null() && view["platform"] == "ANDROID",
            "{view}"
        );
    }
}

#[testkit::test]
async fn a_valid_traceparent_travels_with_the_push_and_an_invalid_one_is_ignored(it: Installation) {
    let service = Running::ready(&it).await;
    let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut found = Vec::new();
    for traceparent in [valid, "00-0-0-00"] {
        let request = service.post(&push()).header("traceparent", traceparent);
        let id = location(&request.send().await.unwrap());
        let stored: Option<String> =
            sqlx::query_scalar("SELECT traceparent FROM push_notifications WHERE id = $1")
                .bind(id.uuid())
                .fetch_one(&it.pool)
                .await
                .unwrap();
        found.push(stored);
    }
    assert_eq!(found, [Some(valid.to_owned()), None]);
}

#[testkit::test]
async fn everything_accepted_at_once_gets_into_the_queue(it: Installation) {
    let service = Running::ready(&it).await;
    let requests = (0..200).map(|_| service.post(&push()).send());
    let mut ids: Vec<_> = futures::future::join_all(requests)
        .await
        .into_iter()
        .map(|answer| location(&answer.unwrap()))
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), stored(&it.pool).await), (200, 200));
    let broker = it.broker();
    eventually("200 messages in the queue", async || {
        (broker.depth(Queue::PushReady).await.ok()?.messages == 200).then_some(())
    })
    .await;
    broker.close().await;
}

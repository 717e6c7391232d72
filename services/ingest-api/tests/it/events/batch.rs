//! Many events in one request: all of them or none.

use broker::Queue;
use reqwest::Response;
use serde_json::{Value, json};
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};
use uuid::Uuid;

use crate::events::{count, event, event_with, nothing_is_stored};
use crate::running::{Running, problem};

/// What a 202 says became of the events.
async fn stored(answer: Response) -> Vec<(Uuid, bool)> {
    assert_eq!(answer.status().as_u16(), 202);
    let body: Value = answer.json().await.unwrap();
    let events = body["events"].as_array().unwrap();
    events
        .iter()
        .map(|event| {
            let id: Uuid = serde_json::from_value(event["id"].clone()).unwrap();
            assert_eq!(event["location"], format!("/events/{id}"));
            (id, event["replayed"].as_bool().unwrap())
        })
        .collect()
}

fn named(number: usize) -> Value {
    event_with(json!({"eventId": format!("e-{number}")}))
}

#[testkit::test]
async fn the_sample_of_the_guide_is_taken(it: Installation) {
    let guide = include_str!("../../../../../docs/ingest.md");
    let samples = guide.split("```json\n").skip(1);
    let samples = samples.filter_map(|rest| serde_json::from_str::<Value>(rest.split("```").next()?).ok());
    let batches: Vec<Value> = samples.filter(|sample| sample["events"].is_array()).collect();
    assert_eq!(batches.len(), 1, "the guide has the sample of a batch");
    let service = Running::ready(&it).await;
    let events = batches[0]["events"].as_array().unwrap();
    let answer = service.post_batch(events).send().await.unwrap();
    assert_eq!(stored(answer).await.len(), events.len());
}

#[testkit::test]
async fn a_thousand_events_are_stored_and_published_in_their_order(it: Installation) {
    let service = Running::ready(&it).await;
    SubscriptionRow::active().make(&it.pool).await;
    let events: Vec<Value> = (0..1000).map(named).collect();
    let answer = service.post_batch(&events).send().await.unwrap();
    let stored = stored(answer).await;
    assert_eq!(stored.len(), 1000);
    assert_eq!(service.look_up_event(stored[7].0).await["eventId"], "e-7");
    assert_eq!(count(&it.pool, "notifications").await, 1000);
    let broker = it.broker();
    eventually("1000 messages in the queue", async || {
        (broker.depth(Queue::ResellerReady).await.ok()?.messages == 1000).then_some(())
    })
    .await;
    broker.close().await;
}

#[testkit::test]
async fn one_event_that_cannot_be_accepted_keeps_all_of_them_out(it: Installation) {
    let service = Running::ready(&it).await;
    let mut events: Vec<Value> = (0..10).map(named).collect();
    events[3]["type"] = "contact.unheard_of".into();
    events[7]["data"] = json!({"contact": {}});
    let answer = service.post_batch(&events).send().await.unwrap();
    let problem = problem(answer, 422, "validation").await;
    let fields: Vec<_> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["events[3].type", "events[7].data/contact"]);
    nothing_is_stored(&it.pool).await;
}

#[testkit::test]
async fn a_field_of_the_wrong_type_is_named_with_its_place_in_the_batch(it: Installation) {
    let service = Running::ready(&it).await;
    let answer = service
        .post_batch(&[event(), event_with(json!({"eventId": 5}))])
        .send()
        .await
        .unwrap();
    let problem = problem(answer, 422, "validation").await;
    assert_eq!(problem["errors"][0]["field"], "events[1].eventId", "{problem}");
}

#[testkit::test]
async fn an_event_id_of_another_event_keeps_the_whole_batch_out(it: Installation) {
    let service = Running::ready(&it).await;
    SubscriptionRow::active().make(&it.pool).await;
    service.accepted_event(&named(3)).await;
    let mut events: Vec<Value> = (0..5).map(named).collect();
    events[3]["data"] = json!({"contact": {"id": "another"}});
    let answer = service.post_batch(&events).send().await.unwrap();
    let problem = problem(answer, 422, "event-id-reused").await;
    assert_eq!(problem["errors"][0]["field"], "events[3].eventId");
    for table in ["events", "notifications", "event_keys"] {
        assert_eq!(count(&it.pool, table).await, 1, "{table}");
    }
    // Not even its names are taken.
    events[3] = named(3);
    let stored = stored(service.post_batch(&events).send().await.unwrap()).await;
    let replayed: Vec<bool> = stored.iter().map(|(_, replayed)| *replayed).collect();
    assert_eq!(replayed, [false, false, false, true, false]);
    // Nor was anybody told to send what is not stored: messages come in the order in which they were published.
    let broker = it.broker();
    let mut consumer = broker.consume(Queue::ResellerReady, 5);
    let mut messages = Vec::new();
    while messages.len() < 5 {
        messages.extend(consumer.next_batch(5).await.unwrap());
    }
    for message in &messages {
        let notification: i64 = sqlx::query_scalar("SELECT count(*) FROM notifications WHERE id = $1")
            .bind(message.envelope.id)
            .fetch_one(&it.pool)
            .await
            .unwrap();
        assert_eq!(notification, 1, "{:?}", message.envelope);
    }
    drop(messages);
    broker.close().await;
}

#[testkit::test]
async fn a_batch_that_comes_again_gets_the_first_answer(it: Installation) {
    let service = Running::ready(&it).await;
    let events = [event(), event(), named(1)];
    let post = async |events: &[Value]| {
        let request = service.post_batch(events).header("idempotency-key", "a");
        request.send().await.unwrap()
    };
    let first = stored(post(&events).await).await;
    let again = post(&events).await;
    assert_eq!(again.headers()["idempotent-replayed"], "true");
    let again = stored(again).await;
    for ((first, _), (again, replayed)) in first.iter().zip(again) {
        assert_eq!((*first, true), (again, replayed));
    }
    problem(post(&events[..2]).await, 422, "idempotency-key-reused").await;
    assert_eq!(count(&it.pool, "events").await, 3);
}

#[testkit::test]
async fn the_same_event_twice_in_a_batch_is_one(it: Installation) {
    let service = Running::ready(&it).await;
    let stored = stored(service.post_batch(&[named(1), named(1)]).send().await.unwrap()).await;
    assert_eq!(stored[0].0, stored[1].0);
    assert_eq!((stored[0].1, stored[1].1), (false, true));
    assert_eq!(count(&it.pool, "events").await, 1);
}

#[testkit::test]
async fn a_batch_has_1_event_to_as_many_as_configured_and_a_limit_of_its_own(mut it: Installation) {
    it.config.reseller.event.batch_max = 20;
    it.config.reseller.event.max_data_bytes = 65_536;
    it.config.ingest.max_body_bytes = 70_000;
    let service = Running::ready(&it).await;
    for body in [
        json!({}),
        json!({"events": []}),
        json!({"events": vec![event(); 21]}),
    ] {
        let request = service.request("POST", "/events/batch").bearer_auth(&service.key);
        let answer = request.json(&body).send().await.unwrap();
        let problem = problem(answer, 422, "validation").await;
        assert_eq!(problem["errors"][0]["field"], "events");
    }
    let large = event_with(json!({"data": {"contact": {"id": "x".repeat(60_000)}}}));
    // Longer than a single event may be, and than 20 times 4096 bytes.
    let answer = service
        .post_batch(&[large.clone(), large.clone()])
        .send()
        .await
        .unwrap();
    problem(answer, 413, "body-too-large").await;
    assert_eq!(
        stored(service.post_batch(&[large]).send().await.unwrap())
            .await
            .len(),
        1
    );
    assert_eq!(
        stored(service.post_batch(&vec![event(); 20]).send().await.unwrap())
            .await
            .len(),
        20
    );
}

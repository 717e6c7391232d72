//! Deliveries in numbers: how they are added up, and how they are shown.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use store::Store;
use store::webhook::{AttemptEnd, StatisticsDelta, TypeStatistics};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::portal::Portal;

fn delta(portal: &Portal, subscription: Uuid, age: TimeDelta) -> StatisticsDelta {
    StatisticsDelta::new(subscription, portal.now() - age)
}

#[testkit::test]
async fn attempts_are_shown_as_rates_durations_and_answers(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let mut counted = delta(&portal, id, TimeDelta::zero());
    for _ in 0..97 {
        counted.record(AttemptEnd::Delivered, Duration::from_millis(20), Some(200), 100);
    }
    counted.record(AttemptEnd::Retried, Duration::from_secs(10), None, 100);
    counted.record(AttemptEnd::Failed, Duration::from_millis(20), Some(404), 100);
    counted.record(AttemptEnd::Failed, Duration::from_millis(20), Some(500), 300);
    portal.store.add_delivery_statistics(&[counted]).await.unwrap();
    let seen = portal.see(&format!("/subscriptions/{id}/metrics")).await;
    assert_eq!((&seen["attempts"], &seen["delivered"]), (&json!(100), &json!(97)));
    assert_eq!((&seen["failed"], &seen["retried"]), (&json!(2), &json!(1)));
    assert_eq!(seen["successRate"], json!(97.0 / 99.0));
    assert_eq!(
        (&seen["failureRate"], &seen["retryRate"]),
        (&json!(2.0 / 99.0), &json!(0.01))
    );
    assert_eq!(seen["payloadBytes"], json!({"total": 10_200, "average": 102.0}));
    assert_eq!(seen["answers"], json!({"200": 97, "404": 1, "500": 1}));
    assert_eq!(
        (&seen["clientErrors"], &seen["unanswered"]),
        (&json!({"404": 1}), &json!(1))
    );
    let latency = |name: &str| seen["latencyMillis"][name].as_f64().unwrap();
    assert!((16.0..24.0).contains(&latency("p50")) && latency("p50") <= latency("p95"));
    assert!(latency("p99") < 24.0, "the one that timed out is the hundredth");
}

#[testkit::test]
async fn hours_are_shown_one_by_one_as_far_back_as_is_asked_for(portal: Portal) {
    let (id, other) = (
        SubscriptionRow::active().make(&portal.pool).await,
        SubscriptionRow::active().make(&portal.pool).await,
    );
    let mut deltas = Vec::new();
    for (subscription, hours) in [(id, 0), (id, 1), (id, 23), (id, 24), (other, 0)] {
        let mut counted = delta(&portal, subscription, TimeDelta::hours(hours));
        counted.record(AttemptEnd::Delivered, Duration::from_millis(5), Some(204), 10);
        deltas.push(counted);
    }
    portal.store.add_delivery_statistics(&deltas).await.unwrap();
    let path = format!("/subscriptions/{id}/metrics");
    let attempts = async |query: &str| portal.see(&format!("{path}{query}")).await["attempts"].clone();
    assert_eq!(attempts("").await, 3);
    assert_eq!(attempts("?hours=1").await, 1);
    assert_eq!(attempts("?hours=25").await, 4);
    let hours = portal.see(&path).await["hours"].as_array().unwrap().clone();
    assert_eq!(hours.len(), 3);
    assert!(hours.is_sorted_by_key(|hour| hour["hour"].as_str().unwrap().to_owned()));
    for query in ["?hours=0", "?hours=673", "?hours=x", "?days=1"] {
        portal
            .refused("GET", &format!("{path}{query}"), None, (400, "invalid-query"))
            .await;
    }
}

/// Events of a type, each delivered so long after it.
fn of_type(portal: &Portal, (id, name): (Uuid, &str), age: TimeDelta, delays: &[u64]) -> TypeStatistics {
    let mut counted = TypeStatistics::new(id, name, portal.now() - age);
    for seconds in delays {
        counted.record(AttemptEnd::Delivered, Some(Duration::from_secs(*seconds)));
    }
    counted
}

#[testkit::test]
async fn delays_are_shown_by_event_type_and_by_step(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let hours = [0, 1, 5].map(TimeDelta::hours);
    let deltas = hours.map(|age| delta(&portal, id, age));
    portal.store.add_delivery_statistics(&deltas).await.unwrap();
    let mut late = of_type(&portal, (id, "domain.created"), hours[2], &[7_200]);
    // What was sent again is delivered, and has no delay.
    late.record(AttemptEnd::Delivered, None);
    late.record(AttemptEnd::Retried, Some(Duration::from_secs(1)));
    let counted = [
        of_type(&portal, (id, "contact.changed"), hours[0], &[2, 2]),
        of_type(&portal, (id, "contact.changed"), hours[0], &[2]),
        of_type(&portal, (id, "domain.created"), hours[1], &[2]),
        late,
    ];
    // Once more adds to the same rows.
    for counted in counted.chunks(2) {
        portal.store.add_type_statistics(counted).await.unwrap();
    }
    let path = format!("/subscriptions/{id}/metrics?hours=6");
    let seen = portal.see(&path).await;
    let types = seen["byEventType"].as_array().unwrap();
    let names: Vec<_> = types.iter().map(|of| of["eventType"].as_str().unwrap()).collect();
    assert_eq!(names, ["contact.changed", "domain.created"]);
    assert_eq!(
        (
            &types[0]["delivered"],
            &types[1]["delivered"],
            &types[1]["retried"]
        ),
        (&json!(3), &json!(3), &json!(1))
    );
    let within = |document: &Value, part: &str, seconds: f64| {
        let millis = document["deliveryDelayMillis"][part].as_f64().unwrap();
        assert!(
            (seconds * 700.0..seconds * 1_420.0).contains(&millis),
            "{part} {millis}: {document}"
        );
    };
    within(&types[0], "p95", 2.0);
    within(&types[1], "p95", 7_200.0);
    within(&seen, "p50", 2.0);
    within(&seen, "p99", 7_200.0);
    let steps = portal.see(&format!("{path}&step=3")).await["hours"].clone();
    let steps = steps.as_array().unwrap();
    assert_eq!(steps.len(), 2, "{steps:?}");
    within(&steps[0], "p50", 7_200.0);
    within(&steps[1], "p99", 2.0);
    let of_one = portal
        .see(&format!("{path}&step=3&eventType=domain.created"))
        .await;
    let types = of_one["byEventType"].as_array().unwrap();
    assert_eq!(types[0]["hours"], Value::Null);
    let delivered: Vec<_> = types[1]["hours"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["delivered"])
        .collect();
    assert_eq!(delivered, [2, 1]);
    within(&types[1]["hours"][1], "p95", 2.0);
    // Every step that holds a delivery has its delays, and each type the same sum, whatever the step.
    for (step, with_delays) in [(1, 3), (2, 2), (4, 2), (6, 1), (672, 1)] {
        let seen = portal.see(&format!("{path}&step={step}")).await;
        let hours = seen["hours"].as_array().unwrap();
        let known = hours
            .iter()
            .filter(|hour| !hour["deliveryDelayMillis"]["p50"].is_null());
        assert_eq!(
            (hours.len(), known.count()),
            (with_delays, with_delays),
            "{step}: {seen}"
        );
        assert_eq!(
            seen["byEventType"],
            portal.see(&path).await["byEventType"],
            "{step}"
        );
    }
    let of_none = portal.see(&format!("{path}&eventType=domain.deleted")).await;
    assert_eq!(of_none["byEventType"], portal.see(&path).await["byEventType"]);
    for query in ["&step=0", "&step=673", "&eventType=%20"] {
        portal
            .refused("GET", &format!("{path}{query}"), None, (400, "invalid-query"))
            .await;
    }
}

#[testkit::test]
async fn nothing_sent_has_no_rates(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let seen = portal.see(&format!("/subscriptions/{id}/metrics")).await;
    for name in ["successRate", "failureRate", "retryRate"] {
        assert_eq!(seen[name], Value::Null);
    }
    assert_eq!(
        seen["latencyMillis"],
        json!({"p50": null, "p95": null, "p99": null})
    );
    assert_eq!(seen["deliveryDelayMillis"], seen["latencyMillis"]);
}

/// Many processes add to the same rows at once, in batches that name a row more than once.
#[testkit::test]
async fn nothing_is_lost_when_many_count_at_once(portal: Portal) {
    let ids: Vec<Uuid> = (0..5).map(|_| Uuid::now_v7()).collect();
    let adding = (0..8).map(|turn| {
        let store = Store::from_pool(portal.pool.clone());
        let mut deltas: Vec<StatisticsDelta> = Vec::new();
        for round in 0..4 {
            for id in &ids {
                let mut counted = delta(&portal, *id, TimeDelta::zero());
                counted.record(
                    AttemptEnd::Delivered,
                    Duration::from_millis(3),
                    Some(200 + round),
                    7,
                );
                deltas.push(counted);
            }
        }
        deltas.rotate_left(turn * 3 % 20);
        tokio::spawn(async move { store.add_delivery_statistics(&deltas).await })
    });
    for added in futures::future::join_all(adding).await {
        added.unwrap().expect("no deadlock");
    }
    for id in ids {
        let rows = portal
            .store
            .delivery_statistics(id, portal.now() - TimeDelta::hours(1))
            .await
            .unwrap();
        let [row] = rows.as_slice() else {
            panic!("{rows:?}")
        };
        assert_eq!((row.attempts, row.delivered, row.payload_bytes), (32, 32, 7 * 32));
        assert_eq!(row.latencies.total(), 32);
        assert_eq!(row.statuses.values().copied().collect::<Vec<_>>(), [8; 4]);
    }
}

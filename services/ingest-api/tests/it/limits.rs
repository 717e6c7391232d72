//! Keys that may hand in no more than their scope and pace allow.

use domain::clock::{Clock as _, SystemClock};
use domain::key::{KeyDigest, Role, format_key};
use domain::lane::Lane;
use domain::scope::Scope;
use reqwest::Response;
use serde_json::{Value, json};
use store::{ApiKey, KeyRotated, SuccessorEnd};
use testkit::{Installation, key_stored_as};

use crate::events::{event_location, event_with, key_with};
use crate::running::{Running, location, problem, push, stored};

/// A key of the role ingest with these limits.
async fn key_within(it: &Installation, scope: Scope, per_second: Option<u32>) -> (ApiKey, String) {
    let stored = ApiKey {
        scope,
        per_second,
        ..ApiKey::new("test".to_owned(), vec![Role::Ingest], None, SystemClock.now())
    };
    let key = key_stored_as(&it.store, &stored).await;
    (stored, key)
}

async fn hand_in(service: &Running, key: &str, path: &str, body: &Value) -> Response {
    service
        .request("POST", path)
        .bearer_auth(key)
        .json(body)
        .send()
        .await
        .unwrap()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[testkit::test]
async fn a_key_hands_in_and_looks_up_what_is_within_its_scope_alone(it: Installation) {
    let service = Running::ready(&it).await;
    let scope = Scope {
        prototypes: names(&["Hello"]),
        resellers: names(&["acme"]),
        event_types: names(&["contact.*"]),
        ..Scope::default()
    };
    let (_, key) = key_within(&it, scope, None).await;
    let id = location(&hand_in(&service, &key, "/push", &push()).await);
    let event = event_location(&hand_in(&service, &key, "/events", &event_with(json!({}))).await);

    let mut other = push();
    other["messagePrototypeKey"] = json!("Bye");
    let refused = problem(hand_in(&service, &key, "/push", &other).await, 403, "forbidden").await;
    assert_eq!(refused["errors"][0]["field"], "messagePrototypeKey");
    let only = "the API key may hand in pushes of Hello only";
    assert_eq!(refused["detail"], only);
    assert_eq!(refused["errors"][0]["detail"], format!("is not allowed: {only}"));
    let of_another = event_with(json!({"resellerId": "bolt"}));
    let refused = problem(
        hand_in(&service, &key, "/events", &of_another).await,
        403,
        "forbidden",
    )
    .await;
    assert_eq!(refused["errors"][0]["field"], "resellerId");
    let batch = json!({"events": [event_with(json!({})), of_another]});
    let refused = problem(
        hand_in(&service, &key, "/events/batch", &batch).await,
        403,
        "forbidden",
    )
    .await;
    assert_eq!(refused["errors"][0]["field"], "events[1].resellerId");
    assert_eq!(stored(&it.pool).await, 1, "of what was refused nothing is stored");

    let beyond = [
        format!("/push/{}", service.accepted(&other).await.uuid()),
        format!("/events/{}", service.accepted_event(&of_another).await),
    ];
    for (path, status) in [
        (format!("/push/{}", id.uuid()), 200),
        (format!("/events/{event}"), 200),
        (beyond[0].clone(), 404),
        (beyond[1].clone(), 404),
    ] {
        assert_eq!(service.look_with(&key, &path).await, status, "{path}");
    }
}

#[testkit::test]
async fn what_is_beyond_the_scope_is_refused_before_its_other_fields_are_looked_at(it: Installation) {
    let service = Running::ready(&it).await;
    let limited = Scope {
        prototypes: names(&["Hello"]),
        event_types: names(&["domain.*"]),
        ..Scope::default()
    };
    let (_, key) = key_within(&it, limited, None).await;
    let of_events = Scope {
        lane: Some(Lane::Reseller),
        ..Scope::default()
    };
    let (_, events) = key_within(&it, of_events, None).await;
    let event = |event_type: Value| event_with(json!({"type": event_type, "data": 5, "occurredAt": "never"}));
    let out = event(json!("contact.deleted"));
    for (key, path, body, field) in [
        (&key, "/events", out.clone(), "type"),
        (
            &key,
            "/events/batch",
            json!({ "events": [out] }),
            "events[0].type",
        ),
        (
            &key,
            "/push",
            json!({"messagePrototypeKey": "Bye"}),
            "messagePrototypeKey",
        ),
    ] {
        let refused = problem(hand_in(&service, key, path, &body).await, 403, "forbidden").await;
        assert_eq!(refused["errors"][0]["field"], field, "{path}");
    }
    let refused = hand_in(&service, &events, "/push", &json!({})).await;
    problem(refused, 403, "forbidden").await;
    // What is wrong with the field itself is told first.
    for (path, body) in [
        ("/events", event(json!(5))),
        ("/events", event(json!("no type"))),
        ("/push", json!({"messagePrototypeKey": 5})),
        ("/push", json!({})),
    ] {
        let refused = hand_in(&service, &key, path, &body).await;
        problem(refused, 422, "validation").await;
    }
}

#[testkit::test]
async fn an_event_id_tells_nothing_to_a_key_that_may_not_hand_in_its_event(it: Installation) {
    let service = Running::ready(&it).await;
    let of_resellers = |resellers: &[&str]| Scope {
        resellers: names(resellers),
        ..Scope::default()
    };
    let (_, bolts) = key_within(&it, of_resellers(&["bolt"]), None).await;
    let (_, acmes) = key_within(&it, of_resellers(&["acme"]), None).await;
    let named = event_with(json!({"eventId": "e-1"}));
    let first = service.accepted_event(&named).await;
    let admin = key_with(&it, Role::Admin).await;
    let retired = service
        .request("DELETE", "/event-types/contact.deleted")
        .bearer_auth(&admin)
        .send()
        .await
        .unwrap();
    assert_eq!(retired.status().as_u16(), 204);
    let batch = json!({"events": [named]});
    for (path, body) in [("/events", &named), ("/events/batch", &batch)] {
        let refused = hand_in(&service, &bolts, path, body).await;
        problem(refused, 403, "forbidden").await;
    }
    let known = hand_in(&service, &acmes, "/events", &named).await;
    assert_eq!(event_location(&known), first);
}

#[testkit::test]
async fn a_key_of_one_lane_does_nothing_in_the_other(it: Installation) {
    let service = Running::ready(&it).await;
    let of = |lane| Scope {
        lane: Some(lane),
        ..Scope::default()
    };
    let (_, pushes) = key_within(&it, of(Lane::Push), None).await;
    let (_, events) = key_within(&it, of(Lane::Reseller), None).await;
    location(&hand_in(&service, &pushes, "/push", &push()).await);
    let event = event_with(json!({}));
    event_location(&hand_in(&service, &events, "/events", &event).await);
    problem(
        hand_in(&service, &pushes, "/events", &event).await,
        403,
        "forbidden",
    )
    .await;
    problem(
        hand_in(&service, &events, "/push", &push()).await,
        403,
        "forbidden",
    )
    .await;
}

#[testkit::test]
async fn a_key_past_its_pace_is_told_when_there_is_more_and_no_other_suffers(it: Installation) {
    let service = Running::ready(&it).await;
    let (_, paced) = key_within(&it, Scope::default(), Some(1)).await;
    // A batch goes at once at any pace, and is then made up for.
    let events: Vec<Value> = (0..300).map(|_| event_with(json!({}))).collect();
    let batch = json!({ "events": events });
    let answer = hand_in(&service, &paced, "/events/batch", &batch).await;
    assert_eq!(answer.status(), 202);
    let refused = hand_in(&service, &paced, "/push", &push()).await;
    let seconds: u64 = refused.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((200..=300).contains(&seconds), "{seconds}");
    let refused = problem(refused, 429, "too-many-requests").await;
    assert!(
        refused["detail"].as_str().unwrap().contains("1 a second"),
        "{refused}"
    );
    service.accepted(&push()).await;
}

#[testkit::test]
async fn what_a_key_may_not_hand_in_takes_nothing_of_its_pace(it: Installation) {
    let service = Running::ready(&it).await;
    let scope = Scope {
        prototypes: names(&["Hello"]),
        event_types: names(&["domain.*"]),
        ..Scope::default()
    };
    let (_, key) = key_within(&it, scope, Some(1)).await;
    let mut other = push();
    other["messagePrototypeKey"] = json!("Bye");
    let event = event_with(json!({"type": "contact.deleted"}));
    let batch = json!({ "events": [event] });
    for _ in 0..2 {
        for (path, body) in [("/push", &other), ("/events", &event), ("/events/batch", &batch)] {
            problem(hand_in(&service, &key, path, body).await, 403, "forbidden").await;
        }
    }
    location(&hand_in(&service, &key, "/push", &push()).await);
}

#[testkit::test]
async fn an_idempotency_key_is_known_with_the_key_that_another_was_rotated_into(it: Installation) {
    let service = Running::ready(&it).await;
    let (old, key) = key_within(&it, Scope::default(), None).await;
    let once = async |key: &str| {
        let request = service
            .request("POST", "/push")
            .bearer_auth(key)
            .header("idempotency-key", "order-1");
        let answer = request.json(&push()).send().await.unwrap();
        (
            answer.headers().contains_key("idempotent-replayed"),
            location(&answer),
        )
    };
    let (_, first) = once(&key).await;
    let new = format_key(&[7; 32]);
    let now = SystemClock.now();
    let act = store::Act {
        by: "test",
        note: None,
        at: now,
    };
    let digest = KeyDigest::of(&new);
    let ends = (now, SuccessorEnd::SameLife);
    let rotating = it.store.rotate_api_key(old.id, &digest, ends, act);
    assert!(matches!(rotating.await.unwrap(), KeyRotated::Done { .. }));
    assert_eq!(once(&new).await, (true, first));
    assert_eq!(stored(&it.pool).await, 1);
}

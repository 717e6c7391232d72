//! What is refused, and with which problem.

use domain::key::Role;
use serde_json::{Value, json};
use testkit::Installation;

use crate::events::{event, event_with, key_with, nothing_is_stored};
use crate::running::{Running, problem};

/// The fields that a 422 lists.
async fn wrong_fields(service: &Running, body: &Value) -> Vec<String> {
    let problem = problem(service.post_event(body).send().await.unwrap(), 422, "validation").await;
    let errors = problem["errors"].as_array().unwrap();
    errors
        .iter()
        .map(|error| error["field"].as_str().unwrap().to_owned())
        .collect()
}

#[testkit::test]
async fn every_field_that_is_wrong_is_listed_and_nothing_is_stored(it: Installation) {
    let service = Running::ready(&it).await;
    assert_eq!(
        wrong_fields(&service, &json!({})).await,
        ["type", "resellerId", "data"]
    );
    for (fields, wrong) in [
        (json!({"type": "contact"}), "type"),
        (json!({"type": "contact.unheard_of"}), "type"),
        (json!({"type": "postrider.test"}), "type"),
        (json!({"resellerId": ""}), "resellerId"),
        (json!({"resellerId": "a b"}), "resellerId"),
        (json!({"resellerId": "x".repeat(65)}), "resellerId"),
        (json!({"data": null}), "data"),
        (json!({"data": [1]}), "data"),
        (json!({"data": "text"}), "data"),
        (json!({"occurredAt": "2026-11-21 12:00"}), "occurredAt"),
        (json!({"occurredAt": "2999-01-01T00:00:00Z"}), "occurredAt"),
        (json!({"eventId": ""}), "eventId"),
        (json!({"eventId": "a.b"}), "eventId"),
        (json!({"eventId": "x".repeat(129)}), "eventId"),
    ] {
        assert_eq!(
            wrong_fields(&service, &event_with(fields.clone())).await,
            [wrong],
            "{fields}"
        );
    }
    nothing_is_stored(&it.pool).await;
}

#[testkit::test]
async fn a_violation_of_the_schema_names_its_place_but_not_what_is_there(it: Installation) {
    let service = Running::ready(&it).await;
    let body = event_with(json!({"data": {"contact": {"id": 4711}}}));
    let answer = service.post_event(&body).send().await.unwrap();
    let problem = problem(answer, 422, "validation").await;
    assert_eq!(problem["errors"][0]["field"], "data/contact/id");
    assert_eq!(problem["errors"][0]["code"], "wrong-type");
    let detail = problem["errors"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("string") && !detail.contains("4711"), "{detail}");
    assert_eq!(
        wrong_fields(&service, &event_with(json!({"data": {}, "eventId": "a.b"}))).await,
        ["eventId", "data"]
    );
    nothing_is_stored(&it.pool).await;
}

#[testkit::test]
async fn a_secret_that_the_type_does_not_list_is_refused_wherever_it_stands(it: Installation) {
    let service = Running::ready(&it).await;
    let record =
        json!({"keyTag": 1, "algorithm": 13, "digestType": 2, "digest": "AB", "privateKey": "s3cr3t"});
    for (event_type, data, place) in [
        (
            "domain.authcode.changed",
            json!({"domain": {"name": "example.org"}, "authCode": "s3cr3t"}),
            "data/authCode",
        ),
        (
            "domain.transfer.approved",
            json!({"domain": {"name": "example.org", "authCode": "s3cr3t"}, "direction": "in", "transferId": "t"}),
            "data/domain/authCode",
        ),
        (
            "domain.dnssec.updated",
            json!({"domain": {"name": "example.org"}, "signed": true, "dsRecords": [record]}),
            "data/dsRecords/0/privateKey",
        ),
    ] {
        let event = event_with(json!({"type": event_type, "data": data}));
        let answer = service.post_event(&event).send().await.unwrap();
        let problem = problem(answer, 422, "validation").await;
        assert_eq!(problem["errors"][0]["field"], place);
        assert_eq!(problem["errors"][0]["code"], "unknown-field");
        let detail = problem["errors"][0]["detail"].as_str().unwrap();
        assert!(
            detail.contains("leave it out") && !detail.contains("s3cr3t"),
            "{detail}"
        );
        let answer = service
            .post_batch(&[event_with(json!({})), event])
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status().as_u16(), 422);
    }
    nothing_is_stored(&it.pool).await;
}

#[testkit::test]
async fn data_that_others_could_not_read_is_refused(it: Installation) {
    let service = Running::ready(&it).await;
    let nested = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for value in [r#""\ud800""#, "1e999", &nested] {
        let body = format!(
            r#"{{"type":"contact.deleted","resellerId":"acme","data":{{"contact":{{"id":"c"}},"x":{value}}}}}"#
        );
        let answer = service.post_written(&body).send().await.unwrap();
        let problem = problem(answer, 422, "validation").await;
        assert_eq!(problem["errors"][0]["field"], "data", "{problem}");
    }
}

#[testkit::test]
async fn data_may_be_as_long_as_configured_and_no_longer(mut it: Installation) {
    it.config.reseller.event.max_data_bytes = 100;
    it.config.ingest.max_body_bytes = 4196;
    let service = Running::ready(&it).await;
    let of_length = |length: usize| {
        let frame = r#"{"contact":{"id":""}}"#.len();
        event_with(json!({"data": {"contact": {"id": "x".repeat(length - frame)}}}))
    };
    service.accepted_event(&of_length(100)).await;
    assert_eq!(wrong_fields(&service, &of_length(101)).await, ["data"]);
    let answer = service.post_event(&of_length(5000)).send().await.unwrap();
    problem(answer, 413, "body-too-large").await;
}

#[testkit::test]
async fn what_is_no_json_object_is_refused_with_its_place(it: Installation) {
    let service = Running::ready(&it).await;
    for (body, status, name) in [
        ("{\"type\": ", 400, "malformed-body"),
        ("{\"data\": {\"a\": tru}}", 400, "malformed-body"),
        ("[]", 422, "validation"),
        ("{\"type\": 5}", 422, "validation"),
    ] {
        let answer = service.post_written(body).send().await.unwrap();
        problem(answer, status, name).await;
    }
    let request = service.request("POST", "/events").bearer_auth(&service.key);
    let answer = request.body(event().to_string()).send().await.unwrap();
    problem(answer, 415, "unsupported-media-type").await;
}

#[testkit::test]
async fn only_ingest_and_admin_may_hand_in_events(it: Installation) {
    let service = Running::ready(&it).await;
    for role in Role::ALL {
        let key = key_with(&it, role).await;
        for path in ["/events", "/events/batch"] {
            let body = match path {
                "/events" => event(),
                _ => json!({"events": [event()]}),
            };
            let request = service.request("POST", path).bearer_auth(&key).json(&body);
            let answer = request.send().await.unwrap();
            if role.may_ingest() {
                assert_eq!(answer.status().as_u16(), 202, "{role}");
            } else {
                problem(answer, 403, "forbidden").await;
            }
        }
    }
    let answer = service
        .request("POST", "/events")
        .json(&event())
        .send()
        .await
        .unwrap();
    problem(answer, 401, "unauthorized").await;
}

//! The catalogue of event types, and how soon a change of it counts.

use domain::key::Role;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use testkit::{Installation, eventually};

use crate::events::{body_of, event_with, key_with};
use crate::running::{Running, problem};

fn definition() -> Value {
    json!({
        "description": "A certificate was issued.",
        "attributes": [{"name": "serial", "type": "string", "required": true}],
        "example": {"serial": "01"},
        "schema": {"type": "object", "required": ["serial"],
            "properties": {"serial": {"type": "string"}, "previous": {"type": "string"}}},
    })
}

async fn put(service: &Running, key: &str, name: &str, definition: &Value) -> Response {
    let request = service.request("PUT", &format!("/event-types/{name}"));
    request.bearer_auth(key).json(definition).send().await.unwrap()
}

async fn retire(service: &Running, key: &str, name: &str) -> Response {
    let request = service.request("DELETE", &format!("/event-types/{name}"));
    request.bearer_auth(key).send().await.unwrap()
}

#[testkit::test]
async fn a_type_is_put_changed_retired_and_put_again(it: Installation) {
    let service = Running::ready(&it).await;
    let admin = key_with(&it, Role::Admin).await;
    let name = "certificate.issued";
    let event = event_with(json!({"type": name, "data": {"serial": "02"}}));
    // Refused before, so that what is not there must not be remembered either.
    let answer = service.post_event(&event).send().await.unwrap();
    problem(answer, 422, "validation").await;
    assert_eq!(
        put(&service, &admin, name, &definition()).await.status(),
        StatusCode::CREATED
    );
    service.accepted_event(&event).await;
    let mut stricter = definition();
    stricter["schema"]["properties"]["serial"] = json!({"const": "01"});
    let answer = put(&service, &admin, name, &stricter).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let stored: Value = answer.json().await.unwrap();
    assert_eq!(
        (&stored["name"], &stored["schema"]),
        (&name.into(), &stricter["schema"])
    );
    let answer = service.post_event(&event).send().await.unwrap();
    problem(answer, 422, "validation").await;
    for _ in 0..2 {
        assert_eq!(
            retire(&service, &admin, name).await.status(),
            StatusCode::NO_CONTENT
        );
    }
    let valid = event_with(json!({"type": name, "data": {"serial": "01"}}));
    let answer = service.post_event(&valid).send().await.unwrap();
    let problem = problem(answer, 422, "validation").await;
    assert!(
        problem["errors"][0]["detail"]
            .as_str()
            .unwrap()
            .contains("retired"),
        "{problem}"
    );
    let shown: Value = service
        .get(&format!("/event-types/{name}"))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert!(shown["retiredAt"].is_string(), "{shown}");
    assert_eq!(
        put(&service, &admin, name, &definition()).await.status(),
        StatusCode::OK
    );
    service.accepted_event(&event).await;
}

#[testkit::test]
async fn a_change_made_elsewhere_counts_within_seconds(it: Installation) {
    let service = Running::ready(&it).await;
    let other = Running::ready(&it).await;
    let admin = key_with(&it, Role::Admin).await;
    let name = "certificate.issued";
    let event = event_with(json!({"type": name, "data": {"serial": "02"}}));
    put(&other, &admin, name, &definition()).await;
    service.accepted_event(&event).await;
    retire(&other, &admin, name).await;
    eventually("the retired type to be refused", async || {
        let answer = service.post_event(&event).send().await.unwrap();
        (answer.status().as_u16() == 422).then_some(())
    })
    .await;
}

#[testkit::test]
async fn a_definition_that_cannot_be_used_is_refused(it: Installation) {
    let service = Running::ready(&it).await;
    let admin = key_with(&it, Role::Admin).await;
    for (name, field, value, wrong) in [
        ("certificate", "description", json!("x"), "name"),
        ("postrider.mine", "description", json!("x"), "name"),
        ("certificate.issued", "description", json!(""), "description"),
        ("certificate.issued", "example", json!([]), "example"),
        (
            "certificate.issued",
            "example",
            json!({"serial": 1}),
            "example/serial",
        ),
        (
            "certificate.issued",
            "variants",
            json!([{"name": "Renewed", "description": "x", "data": {"serial": "02"}}]),
            "variants[0].name",
        ),
        (
            "certificate.issued",
            "variants",
            json!([{"name": "renewed", "description": "x", "data": {"serial": 2}}]),
            "variants[0].data/serial",
        ),
        ("certificate.issued", "schema", json!({"type": "thing"}), "schema"),
        (
            "certificate.issued",
            "schema",
            json!({"$ref": "http://127.0.0.1:1/schema.json"}),
            "schema",
        ),
    ] {
        let mut definition = definition();
        definition[field] = value;
        let problem = problem(put(&service, &admin, name, &definition).await, 422, "validation").await;
        assert_eq!(problem["errors"][0]["field"], wrong, "{problem}");
        let is_payload = wrong.ends_with("/serial");
        assert_eq!(
            problem["errors"][0]["code"] == "wrong-type",
            is_payload,
            "{problem}"
        );
    }
    let answer = service
        .get("/event-types/certificate.issued")
        .send()
        .await
        .unwrap();
    problem(answer, 404, "not-found").await;
}

#[testkit::test]
async fn data_that_breaks_a_rule_of_the_schema_is_told_which_by_a_word(it: Installation) {
    let service = Running::ready(&it).await;
    let admin = key_with(&it, Role::Admin).await;
    let name = "certificate.issued";
    let mut ruled = definition();
    ruled["schema"]["properties"] = json!({
        "serial": {"maxLength": 2}, "days": {"minimum": 1}, "kind": {"enum": ["dv", "ov"]},
        "names": {"uniqueItems": true}, "at": {"format": "date-time"}, "issuer": {"required": ["name"]},
    });
    assert_eq!(put(&service, &admin, name, &ruled).await.status(), 201);
    let data = json!({
        "serial": "0123", "days": 0, "kind": "ev", "names": ["a", "a"], "at": "today", "issuer": {}, "key": "s3cr3t",
    });
    let event = event_with(json!({"type": name, "data": data}));
    let problem = problem(
        service.post_event(&event).send().await.unwrap(),
        422,
        "validation",
    )
    .await;
    let errors = problem["errors"].as_array().unwrap().iter();
    let mut told: Vec<_> = errors
        .map(|error| {
            let place = error["field"].as_str().unwrap().trim_start_matches("data/");
            let mut params = error["params"].clone();
            let path = params.as_object_mut().unwrap().remove("schemaPath");
            let keyword = params["keyword"].as_str().unwrap();
            let expected =
                (keyword != "unknownFields").then(|| json!(format!("/properties/{place}/{keyword}")));
            assert_eq!(path, expected, "{error}");
            (place, json!([error["code"], params]))
        })
        .collect();
    told.sort_by_key(|(place, _)| *place);
    let expected = [
        ("at", json!(["wrong-format", {"keyword": "format"}])),
        ("days", json!(["out-of-range", {"keyword": "minimum", "min": 1}])),
        (
            "issuer",
            json!(["missing", {"keyword": "required", "properties": ["name"]}]),
        ),
        ("key", json!(["unknown-field", {"keyword": "unknownFields"}])),
        ("kind", json!(["unknown-value", {"keyword": "enum"}])),
        ("names", json!(["schema", {"keyword": "uniqueItems"}])),
        ("serial", json!(["too-long", {"keyword": "maxLength", "max": 2}])),
    ];
    assert_eq!(told, expected, "{problem}");
}

#[testkit::test]
async fn variants_are_stored_and_a_definition_without_them_takes_them_away(it: Installation) {
    let service = Running::ready(&it).await;
    let admin = key_with(&it, Role::Admin).await;
    let name = "certificate.issued";
    let mut with_variants = definition();
    with_variants["variants"] = json!([
        {"name": "renewed", "description": "It took the place of another.", "data": {"serial": "02", "previous": "01"}},
    ]);
    for (definition, stored) in [
        (with_variants.clone(), with_variants["variants"].clone()),
        (definition(), json!([])),
    ] {
        put(&service, &admin, name, &definition).await;
        let path = format!("/event-types/{name}");
        let shown: Value = service.get(&path).send().await.unwrap().json().await.unwrap();
        assert_eq!(shown["variants"], stored);
    }
}

#[testkit::test]
async fn a_name_that_is_no_utf_8_is_of_no_event_type(it: Installation) {
    let service = Running::ready(&it).await;
    let admin = key_with(&it, Role::Admin).await;
    for method in ["GET", "DELETE"] {
        let request = service.request(method, "/event-types/%ff").bearer_auth(&admin);
        problem(request.send().await.unwrap(), 404, "not-found").await;
    }
    let refused = problem(
        put(&service, &admin, "%ff", &definition()).await,
        422,
        "validation",
    )
    .await;
    assert_eq!(refused["errors"][0]["field"], "name", "{refused}");
}

#[testkit::test]
async fn a_definition_may_be_as_large_as_all_that_it_may_hold(it: Installation) {
    let service = Running::ready(&it).await;
    let admin = key_with(&it, Role::Admin).await;
    let serial = "7".repeat(60_000);
    let variants = (1..=4).map(|number| {
        json!({"name": format!("variant-{number}"), "description": "A long one.", "data": {"serial": serial}})
    });
    let mut large = definition();
    large["variants"] = variants.collect();
    large["example"]["serial"] = json!(serial);
    let stored = put(&service, &admin, "certificate.issued", &large).await;
    assert_eq!(stored.status(), 201);
}

#[testkit::test]
async fn a_type_says_what_becomes_of_fields_that_it_does_not_list(it: Installation) {
    let service = Running::ready(&it).await;
    let admin = key_with(&it, Role::Admin).await;
    let name = "certificate.issued";
    let data = json!({"serial": "02", "privateKey": "s3cr3t"});
    let event = event_with(json!({"type": name, "eventId": "e-1", "data": data}));
    for (unknown_fields, stored) in [(json!(null), "REFUSE"), (json!("DROP"), "DROP")] {
        let mut definition = definition();
        if !unknown_fields.is_null() {
            definition["unknownFields"] = unknown_fields;
        }
        let answer: Value = put(&service, &admin, name, &definition)
            .await
            .json()
            .await
            .unwrap();
        assert_eq!(answer["unknownFields"], stored);
        if stored == "REFUSE" {
            let answer = service.post_event(&event).send().await.unwrap();
            let problem = problem(answer, 422, "validation").await;
            assert_eq!(problem["errors"][0]["field"], "data/privateKey", "{problem}");
        }
    }
    let id = service.accepted_event(&event).await;
    let passed_on = body_of(&it.pool, id).await;
    let passed_on: Value = serde_json::from_str(&passed_on).unwrap();
    assert_eq!(passed_on["data"], json!({"serial": "02"}));
    // What was handed in is known again, although it was not passed on as a whole.
    assert_eq!(service.accepted_event(&event).await, id);
}

#[testkit::test]
async fn only_an_admin_may_change_the_catalogue(it: Installation) {
    let service = Running::ready(&it).await;
    for role in Role::ALL.into_iter().filter(|role| *role != Role::Admin) {
        let key = key_with(&it, role).await;
        problem(put(&service, &key, "a.b", &definition()).await, 403, "forbidden").await;
        problem(retire(&service, &key, "domain.created").await, 403, "forbidden").await;
    }
    let admin = key_with(&it, Role::Admin).await;
    problem(retire(&service, &admin, "no.such_type").await, 404, "not-found").await;
    let with_nul = retire(&service, &admin, "a.%00").await;
    problem(with_nul, 404, "not-found").await;
}

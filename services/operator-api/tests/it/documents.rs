//! What the service says about itself.

use serde_json::{Value, json};
use testkit::eventually;

use crate::rig::{Rig, answer};

#[test]
fn the_committed_openapi_document_is_the_generated_one() {
    let generated = serde_json::to_string_pretty(&operator_api::openapi()).unwrap();
    testkit::openapi::assert_committed("operator-api", &generated);
}

#[test]
fn every_operation_that_needs_a_key_names_its_problems() {
    let document = serde_json::to_value(operator_api::openapi()).unwrap();
    testkit::openapi::assert_problems_are_named(&document);
    testkit::openapi::assert_references_resolve(&document);
}

#[test]
fn every_operation_that_changes_something_takes_a_note() {
    let document = serde_json::to_value(operator_api::openapi()).unwrap();
    let noted = |operation: &Value| {
        let in_query = |parameter: &Value| parameter["name"] == "note";
        let parameters = operation["parameters"].as_array();
        let body = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        let schema = body.as_str().and_then(|place| place.strip_prefix('#'));
        parameters.is_some_and(|all| all.iter().any(in_query))
            || schema.is_some_and(|place| {
                let schema = document.pointer(place);
                schema.is_some_and(|schema| !schema["properties"]["note"].is_null())
            })
    };
    let mut seen = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if method != "get" {
                assert!(noted(operation), "{method} {path} takes no note");
                seen += 1;
            }
        }
    }
    assert!(seen > 30, "{seen}");
}

#[testkit::test]
async fn the_documents_and_the_probes_need_no_key(rig: &Rig) {
    let open = async |path: &str| rig.request("GET", path).send().await.unwrap();
    let served = answer(open("/openapi.json").await, 200).await;
    assert_eq!(served, serde_json::to_value(operator_api::openapi()).unwrap());
    let page = open("/docs").await.text().await.unwrap();
    for path in served["paths"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("<code>{path}</code>")), "{path}");
    }
    assert_eq!(open("/healthz").await.status(), 200);
    let conditions = eventually("readiness", async || {
        let answer = open("/readyz").await;
        let ready = answer.status() == 200;
        let report: Value = answer.json().await.ok()?;
        ready.then(|| report["conditions"].clone())
    })
    .await;
    assert_eq!(
        conditions,
        json!({"broker": null, "database": null, "migrations": null})
    );
    assert_eq!(open("/nowhere").await.status(), 404);
}

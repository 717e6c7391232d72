//! What the service says about itself.

use std::path::Path;

use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::eventually;

use crate::rig::{answer, with_rig};

#[test]
fn the_committed_openapi_document_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi/operator-api.json");
    let generated = serde_json::to_string_pretty(&operator_api::openapi()).unwrap() + "\n";
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "docs/openapi/operator-api.json is out of date: run the tests with UPDATE_OPENAPI=1"
    );
}

#[test]
fn every_operation_that_needs_a_key_names_its_problems() {
    let document = serde_json::to_value(operator_api::openapi()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            if operation["tags"][0] == "service" {
                assert_eq!(operation["security"], json!([]), "{method} {path}");
                continue;
            }
            assert!(operation["security"][0]["apiKey"].is_array(), "{method} {path}");
            let mut expected = vec!["401", "403", "500", "503"];
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            if parameters
                .iter()
                .any(|it| it["in"] == "path" && it["schema"]["format"] == "uuid")
            {
                expected.push("404");
            }
            if parameters.iter().any(|it| it["in"] == "query") {
                expected.push("400");
            }
            if operation["requestBody"].is_object() {
                expected.extend(["400", "408", "413", "415", "422"]);
            }
            for status in expected {
                let content = &responses[status]["content"]["application/problem+json"];
                let schema = &content["schema"]["$ref"];
                assert_eq!(
                    *schema, "#/components/schemas/Problem",
                    "{method} {path} {status}"
                );
            }
        }
    }
    assert_eq!(unresolved(&document, &document), [] as [&str; 0]);
}

/// References within the document that lead nowhere.
fn unresolved<'a>(document: &Value, part: &'a Value) -> Vec<&'a str> {
    match part {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            let own = own.filter(|reference| document.pointer(reference.trim_start_matches('#')).is_none());
            own.into_iter()
                .chain(members.values().flat_map(|member| unresolved(document, member)))
                .collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| unresolved(document, item)).collect(),
        _ => Vec::new(),
    }
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn the_documents_and_the_probes_need_no_key(pool: PgPool) {
    with_rig(pool, async |rig| {
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
    })
    .await;
}

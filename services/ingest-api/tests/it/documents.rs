//! What the service says about itself.

use config::Config;
use serde_json::{Value, json};

use crate::running::Running;

/// Both servers are away: the documents need neither.
async fn service() -> Running {
    let config = Config::for_tests("postgres://nobody@127.0.0.1:1/none", "amqp://127.0.0.1:1").unwrap();
    Running::start_with(config, String::from("pr_none")).await
}

#[test]
fn the_committed_openapi_document_is_the_generated_one() {
    let generated = serde_json::to_string_pretty(&ingest_api::openapi()).unwrap();
    testkit::openapi::assert_committed("ingest-api", &generated);
}

#[test]
fn every_operation_says_whether_it_needs_a_key() {
    let document = serde_json::to_value(ingest_api::openapi()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let security = &operation["security"];
            if operation["tags"][0] == "service" {
                assert_eq!(*security, json!([]), "{method} {path}");
            } else {
                assert!(security[0]["apiKey"].is_array(), "{method} {path}");
            }
        }
    }
}

#[test]
fn the_openapi_document_is_complete() {
    let document = serde_json::to_value(ingest_api::openapi()).unwrap();
    assert_eq!(
        document["components"]["securitySchemes"]["apiKey"]["scheme"],
        "bearer"
    );
    let submit = &document["paths"]["/push"]["post"];
    let statuses = |operation: &Value| -> Vec<String> {
        operation["responses"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(
        statuses(submit),
        [
            "202", "400", "401", "403", "408", "413", "415", "422", "429", "500", "503"
        ]
    );
    let find = &document["paths"]["/push/{id}"]["get"];
    assert_eq!(
        statuses(find),
        ["200", "400", "401", "403", "404", "429", "500", "503"]
    );
    for operation in [submit, find] {
        assert!(operation["security"][0]["apiKey"].is_array());
        for (status, response) in operation["responses"].as_object().unwrap() {
            if status.starts_with('2') {
                continue;
            }
            let content = &response["content"]["application/problem+json"];
            assert_eq!(
                content["schema"]["$ref"], "#/components/schemas/Problem",
                "{status}"
            );
            assert!(!content["examples"].as_object().unwrap().is_empty(), "{status}");
        }
    }
    for field in ["Location", "Idempotent-Replayed"] {
        assert!(submit["responses"]["202"]["headers"][field].is_object());
    }
    testkit::openapi::assert_references_resolve(&document);
}

#[tokio::test]
async fn the_served_document_is_the_generated_one() {
    let service = service().await;
    let served: Value = service
        .get("/openapi.json")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(served, serde_json::to_value(ingest_api::openapi()).unwrap());
    service.stop().await;
}

#[tokio::test]
async fn the_page_shows_every_route_and_needs_nothing_from_elsewhere() {
    let service = service().await;
    let answer = service.get("/docs").send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8");
    assert!(
        answer.headers()["content-security-policy"]
            .to_str()
            .unwrap()
            .contains("default-src 'none'")
    );
    let page = answer.text().await.unwrap();
    let document = serde_json::to_value(ingest_api::openapi()).unwrap();
    for path in document["paths"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("<code>{path}</code>")), "{path}");
        let route = service.get(path).send().await.unwrap();
        assert!(
            route.status().as_u16() != 404 || path.contains('{'),
            "{path} is documented but not served"
        );
    }
    for outside in ["src=", "<link", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    service.stop().await;
}

#[tokio::test]
async fn a_process_that_can_answer_is_alive_though_not_ready() {
    let service = service().await;
    assert_eq!(
        service.get("/healthz").send().await.unwrap().status().as_u16(),
        200
    );
    let answer = service.get("/readyz").send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 503);
    let report: Value = answer.json().await.unwrap();
    let conditions: Vec<_> = report["conditions"].as_object().unwrap().keys().collect();
    assert_eq!(conditions, ["broker", "database", "migrations", "queue"]);
    service.stop().await;
}

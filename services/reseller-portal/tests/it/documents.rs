//! What the service says about itself.

use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::eventually;

use crate::portal::{Portal, answer};

#[test]
fn the_committed_openapi_document_is_the_generated_one() {
    let generated = serde_json::to_string_pretty(&reseller_portal::openapi()).unwrap();
    testkit::openapi::assert_committed("reseller-portal", &generated);
}

#[test]
fn every_operation_that_needs_a_key_names_its_problems() {
    let document = serde_json::to_value(reseller_portal::openapi()).unwrap();
    testkit::openapi::assert_problems_are_named(&document);
    testkit::openapi::assert_references_resolve(&document);
}

/// What all APIs share must not speak of one of them.
#[test]
fn examples_are_of_this_api_and_what_may_not_be_null_is_not_said_to_be() {
    let document = serde_json::to_value(reseller_portal::openapi()).unwrap();
    assert!(!document.to_string().contains("cronExpression"));
    let change = &document["components"]["schemas"]["SubscriptionChange"];
    for (field, kind) in [
        ("url", json!("string")),
        ("eventTypes", json!("array")),
        ("email", json!("string")),
        ("description", json!(["string", "null"])),
    ] {
        assert_eq!(change["properties"][field]["type"], kind, "{field}");
    }
    assert!(change["required"].is_null(), "a change names what it changes");
}

#[testkit::test]
async fn the_documents_and_the_sending_addresses_need_no_key(pool: PgPool) {
    let networks = ["203.0.113.7/32", "2001:db8::/48", "198.51.100.0/24"];
    let portal = Portal::start_with(pool, |config| {
        config.reseller.sending_ips = networks.map(|network| network.parse().unwrap()).to_vec();
    })
    .await;
    let open = async |path: &str| portal.request("GET", path).send().await.unwrap();
    let served = answer(open("/openapi.json").await, 200).await;
    assert_eq!(served, serde_json::to_value(reseller_portal::openapi()).unwrap());
    let page = open("/docs").await.text().await.unwrap();
    for path in served["paths"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("<code>{path}</code>")), "{path}");
    }
    let ips = answer(open("/.well-known/postrider-ips.json").await, 200).await;
    assert_eq!(
        ips,
        json!({"ips": ["203.0.113.7", "2001:db8::/48", "198.51.100.0/24"]})
    );
    assert_eq!(open("/healthz").await.status(), 200);
    for path in [
        "/openapi.json",
        "/openapi.html",
        "/subscriptions",
        "/healthz",
        "/nowhere",
    ] {
        let headers = open(path).await.headers().clone();
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["cache-control"], "no-store", "{path}");
        assert_eq!(headers["referrer-policy"], "no-referrer", "{path}");
    }
    let conditions = eventually("readiness", async || {
        let answer = open("/readyz").await;
        let ready = answer.status() == 200;
        let report: Value = answer.json().await.ok()?;
        ready.then(|| report["conditions"].clone())
    })
    .await;
    assert_eq!(conditions, json!({"database": null, "migrations": null}));
    assert_eq!(open("/nowhere").await.status(), 404);
}

//! How the system is: broken, found, mended.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use config::{Config, Secret};
use domain::push::PushState;
use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::push_factory::PushRow;
use testkit::{Service, eventually};
use tokio::net::TcpListener;

use crate::console::Browser;
use crate::rig::Rig;

/// With a key for secrets, so that the reseller lane is on.
fn complete(config: &mut Config) {
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    config.reseller.secrets.key = Some(Secret::new(key.to_owned()));
}

fn dispatcher(config: &Arc<Config>) -> Service<dispatcher::Error> {
    Service::start(config.shutdown.grace_period, |lifecycle| {
        dispatcher::run(config.clone(), lifecycle)
    })
}

fn retry_worker(config: &Arc<Config>) -> Service<retry_worker::Error> {
    Service::start(config.shutdown.grace_period, |lifecycle| {
        retry_worker::run(config.clone(), lifecycle)
    })
}

async fn ingest_api(config: &Arc<Config>) -> Service<ingest_api::Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Service::start(config.shutdown.grace_period, |lifecycle| {
        ingest_api::run(config.clone(), listener, lifecycle)
    })
}

/// Waits until the status has this many findings of a kind; returns the status.
async fn until_found(rig: &Rig, id: &str, count: usize) -> Value {
    eventually(&format!("{count} findings {id}"), async || {
        let status = rig.see("/status").await;
        let findings = status["findings"].as_array().unwrap();
        let found = findings.iter().filter(|finding| finding["id"] == id).count();
        (found == count).then_some(status)
    })
    .await
}

async fn until_healthy(rig: &Rig) -> Value {
    eventually("the system to be healthy", async || {
        let status = rig.see("/status").await;
        (status["healthy"] == true).then_some(status)
    })
    .await
}

#[testkit::test]
async fn what_is_broken_is_found_and_what_is_mended_is_healthy(pool: PgPool) {
    let rig = &Rig::with(pool, complete).await;
    let config = rig.it.shared_config();
    let status = until_found(rig, "service-missing", 3).await;
    assert_eq!(status["healthy"], false);
    assert_eq!(status["findings"][0]["severity"], "critical");

    let (sends, accepts) = (dispatcher(&config), ingest_api(&config).await);
    let retries = retry_worker(&config);
    let status = until_healthy(rig).await;
    let services: Vec<&str> = status["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| process["service"].as_str().unwrap())
        .collect();
    assert_eq!(
        services,
        ["dispatcher", "ingest-api", "operator-api", "retry-worker"]
    );
    eventually("a leader to be named", async || {
        rig.see("/status").await["leader"]["holder"]
            .is_string()
            .then_some(())
    })
    .await;

    let at: DateTime<Utc> = status["at"].as_str().unwrap().parse().unwrap();
    let store = &rig.it.store;
    store.note_look(true, at).await.unwrap();
    assert!(until_healthy(rig).await["since"].is_string());
    let browser = Browser::with_key(rig, &rig.key).await;
    let page = browser.see("/console").await;
    assert!(page.contains("All is well since <time"), "{page}");
    assert!(
        page.contains("was accepted is delivered, or on its way."),
        "{page}"
    );
    PushRow::in_state(PushState::Failed).make(&rig.it.pool).await;
    eventually("the page to say what is not delivered", async || {
        let page = browser.see("/console").await;
        let said = "or on its way, except for 1 open dead letter: what";
        page.contains(said).then_some(())
    })
    .await;
    retries.stop().await;
    let status = until_found(rig, "service-missing", 1).await;
    let text = status["findings"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("No retry-worker runs"), "{text}");
    assert_eq!(status["findings"][0]["command"], "postrider serve retry-worker");

    let retries = retry_worker(&config);
    // An answer has called it wrong since the last look, so that it has not been well since before that one.
    assert_eq!(until_healthy(rig).await["since"], Value::Null);
    store.note_look(true, at + TimeDelta::seconds(60)).await.unwrap();
    assert!(until_healthy(rig).await["since"].is_string());
    // Of what another look has found otherwise, it is not known since when either.
    store.note_look(false, at + TimeDelta::seconds(61)).await.unwrap();
    assert_eq!(until_healthy(rig).await["since"], Value::Null);
    retries.stop().await;
    accepts.stop().await;
    sends.stop().await;
}

#[testkit::test]
async fn a_paused_lane_is_told_with_who_and_why(rig: &Rig) {
    rig.act("/lanes/push/pause", &json!({"note": "incident 17"}), 200)
        .await;
    let status = until_found(rig, "paused", 1).await;
    let findings = status["findings"].as_array().unwrap();
    let paused = findings.iter().find(|finding| finding["id"] == "paused").unwrap();
    let text = paused["text"].as_str().unwrap();
    assert!(
        text.starts_with("The lane push is paused by ") && text.ends_with("incident 17"),
        "{text}"
    );
    assert_eq!(paused["severity"], "notice");
    let headline = status["headline"].as_str().unwrap();
    assert!(headline.ends_with(", with the lane push paused"), "{headline}");
    assert_eq!(status["lanes"][0]["paused"], true);
    assert_eq!(status["lanes"][1]["paused"], false);

    rig.act("/lanes/push/resume", &json!({}), 200).await;
    until_found(rig, "paused", 0).await;
}

#[testkit::test]
async fn a_schema_that_lacks_a_migration_is_the_one_thing_that_is_known(rig: &Rig) {
    sqlx::query("DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)")
        .execute(&rig.it.pool)
        .await
        .unwrap();
    let status = until_found(rig, "migrations-missing", 1).await;
    assert_eq!(status["lanes"], Value::Null);
    assert_eq!(status["healthy"], false);
}

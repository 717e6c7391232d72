//! The broker is away; the database is away.

use std::time::Duration;

use config::Secret;
use serde_json::Value;
use store::push::PromotionQueue;
use testkit::{FaultProxy, Installation, eventually};

use crate::running::{Running, problem, push, push_saying, stored, stored_saying};

/// A port that no process listens on.
pub(crate) fn closed_port() -> u16 {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    // Kept until the process ends, so that no other process gets it.
    std::mem::forget(socket);
    port
}

async fn conditions(service: &Running) -> (u16, Value) {
    let answer = service.get("/readyz").send().await.unwrap();
    let status = answer.status().as_u16();
    let report: Value = answer.json().await.unwrap();
    (status, report["conditions"].clone())
}

#[testkit::test]
async fn without_a_broker_pushes_are_accepted_and_wait(it: Installation) {
    let mut config = it.config.clone();
    config.amqp.url = Secret::new(format!("amqp://127.0.0.1:{}", closed_port()));
    let service = Running::start(&it, config).await;
    let id = service.accepted(&push()).await;
    let view = service.look_up(id).await;
    assert_eq!(view["status"], "PENDING");
    assert_eq!(view["explanation"], "Waits for room in the queue.");
    eventually("only the broker to be missing", async || {
        let (status, conditions) = conditions(&service).await;
        let only_broker = conditions["database"].is_null() && conditions["migrations"].is_null();
        (status == 503 && only_broker && conditions["broker"].is_string()).then_some(())
    })
    .await;
}

#[testkit::test]
async fn a_broker_that_goes_away_costs_no_push_and_is_used_again_when_it_is_back(it: Installation) {
    let (proxy, through) = FaultProxy::for_url(it.config.amqp.url.expose()).await;
    let mut config = it.config.clone();
    config.amqp.url = Secret::new(through);
    let service = Running::start(&it, config).await;
    service.until_ready().await;
    proxy.cut();
    eventually("a push to wait for the broker", async || {
        let id = service.accepted(&push()).await;
        (service.look_up(id).await["status"] == "PENDING").then_some(())
    })
    .await;
    eventually("readiness to report the broker", async || {
        (conditions(&service).await.0 == 503).then_some(())
    })
    .await;
    proxy.heal();
    service.until_ready().await;
    eventually("a push to go straight to the queue", async || {
        let lease = Duration::from_secs(600);
        let promoted = it.store.promote_pushes(PromotionQueue::Pending, 1000, lease);
        promoted.await.unwrap();
        let id = service.accepted(&push()).await;
        (service.look_up(id).await["status"] == "IN_MEMORY").then_some(())
    })
    .await;
    service.stop().await;
}

#[testkit::test]
async fn without_a_database_nothing_is_accepted_and_nothing_is_half_stored(it: Installation) {
    let (proxy, through) = FaultProxy::for_url(it.config.database.url.expose()).await;
    let mut config = it.config.clone();
    config.database.url = Secret::new(through);
    let service = Running::start(&it, config).await;
    service.until_ready().await;
    service.accepted(&push_saying("before")).await;
    proxy.cut();
    for _ in 0..20 {
        let answer = service.post(&push_saying("meanwhile")).send().await.unwrap();
        let seconds: u32 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!(seconds > 0);
        let problem = problem(answer, 503, "unavailable").await;
        assert!(problem.get("errors").is_none(), "{problem}");
    }
    let answer = service
        .get("/push/0194f6a0-0000-7000-8000-000000000000")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status().as_u16(), 503);
    eventually("readiness to report the database", async || {
        let (status, conditions) = conditions(&service).await;
        (status == 503 && conditions["database"].is_string()).then_some(())
    })
    .await;
    proxy.heal();
    eventually("a push to be accepted again", async || {
        let answer = service.post(&push_saying("after")).send().await.unwrap();
        (answer.status().as_u16() == 202).then_some(())
    })
    .await;
    service.until_ready().await;
    assert_eq!(stored(&it.pool).await, 2);
    assert_eq!(stored_saying(&it.pool, "meanwhile").await, 0);
    service.stop().await;
}

#[testkit::test]
async fn a_service_that_starts_before_its_database_says_so(it: Installation) {
    let mut config = it.config.clone();
    config.database.url = Secret::new(format!("postgres://nobody@127.0.0.1:{}/none", closed_port()));
    config.database.acquire_timeout = Duration::from_millis(200);
    let service = Running::start_with(config, domain::key::format_key(&[1; 32])).await;
    let answer = service.post(&push()).send().await.unwrap();
    assert!(answer.headers().contains_key("retry-after"));
    problem(answer, 503, "unavailable").await;
    assert_eq!(
        service.get("/healthz").send().await.unwrap().status().as_u16(),
        200
    );
}

#[testkit::test]
async fn a_schema_that_is_not_up_to_date_is_reported(it: Installation) {
    sqlx::query("DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)")
        .execute(&it.pool)
        .await
        .unwrap();
    let service = Running::start(&it, it.config.clone()).await;
    eventually("readiness to report the schema", async || {
        let (_, conditions) = conditions(&service).await;
        let missing = conditions["migrations"]
            .as_str()
            .is_some_and(|reason| reason != "starting");
        (conditions["database"].is_null() && missing).then_some(())
    })
    .await;
}

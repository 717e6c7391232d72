//! Database and broker go away and come back.

use std::time::Duration;

use config::Secret;
use sqlx::{ConnectOptions as _, PgPool};
use testkit::{FaultProxy, amqp_url, eventually};

use crate::operations::operations;
use crate::rig::{Rig, problem};

async fn becomes_ready(rig: &Rig, ready: bool) {
    eventually(&format!("readiness to be {ready}"), async || {
        let answer = rig.request("GET", "/readyz").send().await.ok()?;
        (answer.status().is_success() == ready).then_some(())
    })
    .await;
}

#[testkit::test]
async fn without_the_database_callers_are_asked_to_come_back(pool: PgPool) {
    let url = pool.connect_options().to_url_lossy().to_string();
    let (proxy, through) = FaultProxy::for_url(&url).await;
    let adapt = |config: &mut config::Config| {
        config.database.url = Secret::new(through);
        config.operator.request_timeout = Duration::from_secs(5);
    };
    let rig = &Rig::with(pool, adapt).await;
    becomes_ready(rig, true).await;
    proxy.cut();
    for operation in operations() {
        let request = operation.request(rig, &operation.path).bearer_auth(&rig.key);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 503, "{operation}");
        assert!(answer.headers().contains_key("retry-after"), "{operation}");
        problem(answer, 503, "unavailable").await;
    }
    becomes_ready(rig, false).await;
    proxy.heal();
    becomes_ready(rig, true).await;
    eventually("the service to work again", async || {
        let answer = rig.call("GET", "/status").send().await.ok()?;
        (answer.status() == 200).then_some(())
    })
    .await;
}

/// The engineer on call wants to know most when something is away.
#[testkit::test]
async fn without_the_broker_everything_can_still_be_looked_at(pool: PgPool) {
    let (proxy, through) = FaultProxy::for_url(&amqp_url()).await;
    let adapt = |config: &mut config::Config| config.amqp.url = Secret::new(through);
    let rig = &Rig::with(pool, adapt).await;
    becomes_ready(rig, true).await;
    proxy.cut();
    becomes_ready(rig, false).await;
    for operation in operations().iter().filter(|operation| !operation.changes()) {
        let request = operation.request(rig, &operation.path).bearer_auth(&rig.key);
        let status = request.send().await.unwrap().status().as_u16();
        let expected = if operation.malformed_path.is_some() {
            404
        } else {
            200
        };
        assert_eq!(status, expected, "{operation}");
    }
    proxy.heal();
    becomes_ready(rig, true).await;
}

//! The database goes away and comes back.

use config::Secret;
use sqlx::{ConnectOptions as _, PgPool};
use testkit::{FaultProxy, eventually};

use crate::portal::{Portal, problem, subscription};

#[testkit::test]
async fn without_the_database_callers_are_asked_to_come_back(pool: PgPool) {
    let url = pool.connect_options().to_url_lossy().to_string();
    let (proxy, through) = FaultProxy::for_url(&url).await;
    let portal = Portal::start_with(pool, |config| {
        config.database.url = Secret::new(through);
    })
    .await;
    portal.created().await;
    proxy.cut();
    for (method, path) in [
        ("GET", "/subscriptions"),
        ("GET", "/event-types"),
        ("POST", "/subscriptions"),
    ] {
        let request = portal.call(method, path);
        let request = if method == "POST" {
            request.json(&subscription())
        } else {
            request
        };
        let answer = request.send().await.unwrap();
        assert!(answer.headers().contains_key("retry-after"), "{method} {path}");
        problem(answer, 503, "unavailable").await;
    }
    eventually("the service to say so", async || {
        let answer = portal.request("GET", "/readyz").send().await.ok()?;
        (answer.status() == 503).then_some(())
    })
    .await;
    proxy.heal();
    eventually("the service to work again", async || {
        let answer = portal.call("GET", "/subscriptions").send().await.ok()?;
        (answer.status() == 200).then_some(())
    })
    .await;
    assert_eq!(portal.all("/subscriptions", 50).await.len(), 1);
}

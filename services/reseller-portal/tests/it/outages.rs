//! The database goes away and comes back.

use config::Secret;
use sqlx::{ConnectOptions as _, PgPool};
use testkit::{FaultProxy, eventually};

use crate::app::entered;
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

#[testkit::test]
async fn a_page_that_the_database_keeps_away_is_asked_for_again_by_itself(pool: PgPool) {
    let url = pool.connect_options().to_url_lossy().to_string();
    let (proxy, through) = FaultProxy::for_url(&url).await;
    let portal = Portal::start_with(pool, |config| {
        config.database.url = Secret::new(through);
    })
    .await;
    let browser = entered(&portal, &[]).await;
    proxy.cut();
    let page = browser.get("/app").await;
    let seconds = page.header("retry-after");
    assert_eq!((page.status, page.header("refresh")), (503, seconds), "{page:?}");
    assert!(
        page.html.contains(&format!("asked for again in {seconds} s.")),
        "{}",
        page.html
    );
    // A form would be sent a second time.
    let form = browser.post("/app/preferences", &[]).await;
    assert_eq!((form.status, form.header("refresh")), (503, ""), "{form:?}");
}

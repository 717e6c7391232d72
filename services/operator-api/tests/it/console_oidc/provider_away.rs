//! A provider that is away or fails, and what a key is good for then.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use config::KeyLogin;
use futures::future::join_all;
use serde_json::json;
use sqlx::PgPool;
use store::BREAK_GLASS_MINUTES;
use testkit::eventually;

use super::{JOBS, entries, rig_with, sign_in};
use crate::console::{Browser, holds};
use crate::provider::Provider;
use crate::rig::Rig;

/// Short enough to be waited for.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(600);

#[testkit::test]
async fn a_key_opens_the_console_while_the_provider_is_away(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    let browser = Browser::new(&rig);
    let refused = browser.sign_in(&rig.key, JOBS).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    holds(&refused.html, &["sign in with the provider"]);

    provider.change(|mood| mood.is_away = true);
    rig.clock.advance(TimeDelta::minutes(2));
    let start = browser.get("/console/sign-in/start").await;
    assert_eq!(start.status, 503, "{start:?}");
    holds(
        &start.html,
        &["does not answer as it should", "takes a key in 60 s"],
    );
    assert_eq!(browser.sign_in(&rig.key, JOBS).await.status, 403);

    rig.clock.advance(TimeDelta::seconds(60));
    // That a minute has passed is not enough: the provider is asked once more.
    eventually("the form for keys", async || {
        let page = browser.see("/console/sign-in").await;
        rig.clock.advance(TimeDelta::seconds(5));
        page.contains("type=\"password\"")
            .then(|| holds(&page, &["Break-glass"]))
    })
    .await;
    let answer = browser.sign_in(&rig.key, JOBS).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, JOBS),
        "{answer:?}"
    );
    let log = entries(&rig, "visit").await;
    assert_eq!((log.len(), &log[0]["action"]), (1, &json!("visit.break-glass")));
    let status = rig.see("/status").await;
    let findings = status["findings"].as_array().unwrap();
    let finding = findings
        .iter()
        .find(|finding| finding["id"] == "break-glass")
        .unwrap();
    assert_eq!(finding["severity"], "notice");
    holds(
        &browser.see("/console").await,
        &["/console/audit?action=visit.break-glass"],
    );

    provider.change(|mood| mood.is_away = false);
    // One good answer is not enough, and for a moment a failure is shared by all who ask.
    let asked = provider.discovery_requests();
    eventually("the provider to be found again", async || {
        rig.clock.advance(TimeDelta::seconds(5));
        let page = Browser::new(&rig).see("/console/sign-in").await;
        let takes_keys = page.contains("type=\"password\"");
        assert!(takes_keys || provider.discovery_requests() >= asked + 2, "{page}");
        (!takes_keys).then_some(())
    })
    .await;
    assert_eq!(browser.get(JOBS).await.status, 200, "the visit goes on");
    rig.clock.advance(TimeDelta::minutes(BREAK_GLASS_MINUTES / 2 - 1));
    // Looked at every half an hour at least, it lasts an hour.
    sqlx::query("UPDATE visits SET last_seen_at = ends_at")
        .execute(&rig.it.pool)
        .await
        .unwrap();
    rig.clock.advance(TimeDelta::minutes(BREAK_GLASS_MINUTES / 2 + 1));
    crate::console::ended(&browser).await;
    rig.clock.advance(TimeDelta::hours(24));
    let status = rig.see("/status").await;
    assert!(!status.to_string().contains("break-glass"), "{status}");
}

#[testkit::test]
async fn keys_can_be_shut_out_for_good(pool: PgPool) {
    let (rig, provider) = rig_with(pool, Some(KeyLogin::Never)).await;
    provider.change(|mood| mood.is_away = true);
    let browser = Browser::new(&rig);
    assert_eq!(browser.get("/console/sign-in/start").await.status, 503);
    rig.clock.advance(TimeDelta::minutes(2));
    let answer = browser.sign_in(&rig.key, JOBS).await;
    assert_eq!(answer.status, 403);
    assert!(!answer.html.contains("type=\"password\""), "{}", answer.html);
    // The API takes keys as before.
    rig.see("/status").await;
}

#[testkit::test]
async fn a_provider_that_does_not_answer_is_not_waited_for_past_the_deadline(pool: PgPool) {
    let provider = Provider::start().await;
    let rig = Rig::with(pool, |config| {
        provider.configure(config);
        config.operator.request_timeout = REQUEST_TIMEOUT;
    })
    .await;
    provider.change(|mood| mood.is_silent = true);
    let browsers: Vec<_> = (0..10).map(|_| Browser::new(&rig)).collect();
    let began = Instant::now();
    let starts = browsers
        .iter()
        .map(|browser| browser.get("/console/sign-in/start"));
    for answer in join_all(starts).await {
        assert_eq!(answer.status, 503, "{answer:?}");
        holds(
            &answer.html,
            &["127.0.0.1 does not answer in time", "Sign in with 127.0.0.1"],
        );
    }
    let pages = browsers.iter().map(|browser| browser.see("/console/sign-in"));
    join_all(pages).await;
    let lasted = began.elapsed();
    assert!(lasted < REQUEST_TIMEOUT * 5, "one after another: {lasted:?}");
    assert_eq!(provider.discovery_requests(), 1, "they share one question");
    provider.change(|mood| mood.is_silent = false);
    eventually("the question to be answered", async || {
        let answer = browsers[0].get("/console/sign-in/start").await;
        (answer.status == 303).then_some(())
    })
    .await;
    assert_eq!(provider.discovery_requests(), 1, "nor was its answer lost");
}

#[testkit::test]
async fn a_token_endpoint_that_fails_is_an_outage_too(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| {
        mood.token_is_away = true;
        mood.claims["groups"] = json!(["support"]);
    });
    let browser = Browser::new(&rig);
    for _ in 0..2 {
        let answer = sign_in(&browser, &provider).await;
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(!answer.html.contains("Break-glass"), "{}", answer.html);
        rig.clock.advance(TimeDelta::seconds(40));
    }
    let third = sign_in(&browser, &provider).await;
    holds(&third.html, &["does not answer as it should", "Break-glass"]);
    provider.change(|mood| mood.token_is_away = false);
    assert_eq!(sign_in(&browser, &provider).await.status, 303);
    holds(
        &Browser::new(&rig).see("/console/sign-in").await,
        &["Break-glass"],
    );
    assert_eq!(sign_in(&browser, &provider).await.status, 303);
    let page = Browser::new(&rig).see("/console/sign-in").await;
    assert!(!page.contains("Break-glass"), "two good answers end it: {page}");
}

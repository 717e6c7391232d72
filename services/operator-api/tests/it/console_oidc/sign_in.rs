//! A sign-in from its beginning to its end: who may end it, which tokens are believed, and how often one may try.

use chrono::TimeDelta;
use futures::future::join_all;
use serde_json::json;
use sqlx::PgPool;

use super::{begin, entries, is_refused, rig_with, signed_in};
use crate::console::{Browser, holds};
use crate::provider::Fault;

#[testkit::test]
async fn tokens_that_are_not_to_be_believed_open_nothing(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    let now = rig.now().timestamp();
    for (claims, part) in [
        (json!({"exp": now - 61}), "exp"),
        (json!({"iat": now + 120}), "iat"),
        (json!({"nonce": "other"}), "nonce"),
        (json!({"aud": "other"}), "aud"),
        (json!({"aud": ["postrider", "other"]}), "azp"),
        (json!({"iss": "https://evil.example"}), "iss"),
        (json!({"sub": null}), "sub"),
    ] {
        provider.change(|mood| mood.claims = claims);
        is_refused(&rig, &provider, 403, &[&format!("the claim {part} ")]).await;
    }
    provider.change(|mood| mood.claims = json!({"groups": ["support"]}));
    for (fault, part) in [
        (Fault::Tampered, "signature"),
        (Fault::Unsigned, "is not accepted"),
    ] {
        provider.change(|mood| mood.fault = fault);
        is_refused(&rig, &provider, 403, &[part]).await;
    }
    assert!(entries(&rig, "visit").await.is_empty());
    assert_eq!(provider.key_requests(), 1);
}

#[testkit::test]
async fn a_key_that_is_not_known_is_looked_for_once_a_minute(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    signed_in(&rig, &provider, "support").await;
    provider.rotate();
    is_refused(&rig, &provider, 403, &["does not publish"]).await;
    is_refused(&rig, &provider, 403, &["does not publish"]).await;
    assert_eq!(provider.key_requests(), 1, "the keys were read a moment ago");
    rig.clock.advance(TimeDelta::seconds(60));
    signed_in(&rig, &provider, "support").await;
    assert_eq!(provider.key_requests(), 2);
}

#[testkit::test]
async fn only_the_browser_that_began_can_end_it_and_once(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.claims["groups"] = json!(["on-call"]));
    let (browser, other) = (Browser::new(&rig), Browser::new(&rig));
    let start = "/console/sign-in/start";
    let back = begin(&browser, &provider, start).await;
    let stolen = other.get(&back).await;
    assert_eq!(stolen.status, 400, "{stolen:?}");
    holds(&stolen.html, &["has not begun a sign-in"]);

    let foreign = begin(&other, &provider, start).await;
    let mixed = browser.get(&foreign).await;
    assert_eq!(mixed.status, 400, "{mixed:?}");
    holds(&mixed.html, &["does not belong to a sign-in"]);
    assert_eq!(browser.get(&back).await.status, 400, "its attempt is over");

    let back = begin(&browser, &provider, start).await;
    let replayed = browser.request("GET", &back);
    assert_eq!(browser.get(&back).await.header("location"), "/console");
    let replayed = browser.send(replayed).await;
    assert_eq!(replayed.status, 400, "{replayed:?}");
    holds(&replayed.html, &["was used or is too old"]);

    let back = begin(&other, &provider, start).await;
    let state = back.split("state=").nth(1).unwrap();
    let denied = other
        .get(&format!(
            "/console/sign-in/return?error=access_denied&state={state}"
        ))
        .await;
    assert_eq!(denied.status, 400);
    holds(&denied.html, &["access_denied"]);
    assert_eq!(entries(&rig, "visit.begin").await.len(), 1);
}

#[testkit::test]
async fn signing_in_leads_to_the_console_alone(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.claims["groups"] = json!(["on-call"]));
    let browser = Browser::new(&rig);
    for next in ["https://evil.example/", "//evil.example", "/lanes"] {
        let back = begin(
            &browser,
            &provider,
            &format!("/console/sign-in/start?next={next}"),
        )
        .await;
        assert_eq!(browser.get(&back).await.header("location"), "/console");
    }
}

#[testkit::test]
async fn an_attempt_is_sealed_and_lasts_ten_minutes(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.claims["groups"] = json!(["on-call"]));
    let browser = Browser::new(&rig);
    let refused = async |back: &str| {
        let answer = browser.get(back).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        holds(&answer.html, &["has not begun a sign-in of the last ten minutes"]);
    };
    const COOKIE: &str = "__Host-pr_oidc";
    let back = begin(&browser, &provider, "/console/sign-in/start").await;
    let sealed = browser.cookie(COOKIE);
    let (written, _) = sealed.rsplit_once('.').unwrap();
    let parts: Vec<&str> = written.split('.').collect();
    for changed in [
        // Without a seal, as it was once; begun later; leading elsewhere.
        [&parts[..3], &parts[4..]].concat().join("."),
        sealed.replace(parts[3], &(rig.now().timestamp() + 1).to_string()),
        sealed.replace(parts[5], "L2NvbnNvbGUvam9icw"),
    ] {
        browser.plant(COOKIE, &changed);
        refused(&back).await;
    }
    let back = begin(&browser, &provider, "/console/sign-in/start").await;
    rig.clock.advance(TimeDelta::minutes(10) + TimeDelta::seconds(1));
    refused(&back).await;
}

#[testkit::test]
async fn signing_in_is_bounded_for_each_address(pool: PgPool) {
    let (rig, _provider) = rig_with(pool, None).await;
    let browser = Browser::new(&rig);
    for path in ["/console/sign-in/start", "/console/sign-in/return?code=a"] {
        let answers = join_all((0..40).map(|_| browser.get(path))).await;
        let refused: Vec<_> = answers.iter().filter(|answer| answer.status == 429).collect();
        assert!(refused.len() >= 10, "{path}: {}", refused.len());
        holds(
            &refused[0].html,
            &["too many attempts to sign in from your address", "try again"],
        );
    }
    // Nothing else is.
    assert_eq!(browser.get("/console/sign-in").await.status, 200);
}

#[testkit::test]
async fn a_wrong_clock_is_named_and_not_gone_round_with(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.claims["groups"] = json!(["on-call"]));
    for ahead in [-400, -180, 120, 4_000] {
        provider.change(|mood| mood.clock_ahead = ahead);
        is_refused(
            &rig,
            &provider,
            403,
            &["the clocks of 127.0.0.1 and of this server seem to lie", "UTC"],
        )
        .await;
    }
    // What lies within a minute is made up for: the person showed who it is 280 seconds ago, by either clock.
    let form = (
        "/console/lanes/push/pause",
        [("note", "a test"), ("name", "push")],
    );
    for ahead in [-50, 50] {
        provider.change(|mood| (mood.clock_ahead, mood.authenticated_ago) = (ahead, 280));
        let browser = signed_in(&rig, &provider, "on-call").await;
        browser.act(form.0, &form.1).await;
        browser.act("/console/lanes/push/resume", &form.1).await;
    }
    // A provider that takes no heed of max_age would be asked again and again.
    provider.change(|mood| (mood.clock_ahead, mood.authenticated_ago) = (0, 330));
    let browser = Browser::new(&rig);
    let back = begin(
        &browser,
        &provider,
        "/console/sign-in/start?again=1&next=/console/lanes/push/pause",
    )
    .await;
    let answer = browser.get(&back).await;
    assert_eq!(answer.status, 403, "{answer:?}");
    holds(&answer.html, &["more than 5 minutes ago", "max_age"]);
}

#[testkit::test]
async fn another_site_begins_no_sign_in(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    let browser = Browser::new(&rig);
    for headers in [
        &[("sec-fetch-site", "cross-site")] as &[_],
        &[("sec-fetch-site", "same-site")],
        &[],
        &[("referer", "https://evil.example/")],
    ] {
        let request = browser.request("GET", "/console/sign-in/start?next=/console/jobs");
        let request = headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = browser.send(request).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, "/console/sign-in?next=%2Fconsole%2Fjobs"),
            "{headers:?}"
        );
        assert_eq!(browser.cookie("__Host-pr_oidc"), "");
    }
    assert_eq!(provider.discovery_requests(), 0);
    let written = browser
        .request("GET", "/console/sign-in/start")
        .header("sec-fetch-site", "none");
    assert!(
        browser
            .send(written)
            .await
            .header("location")
            .starts_with(provider.issuer())
    );
}

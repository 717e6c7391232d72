//! Signing in to the console with a provider: who gets in, as what, what is dangerous, and what a key is good for beside it.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use config::KeyLogin;
use domain::key::Role;
use futures::future::join_all;
use serde_json::{Value, json};
use sqlx::PgPool;
use store::BREAK_GLASS_MINUTES;
use testkit::eventually;
use url::form_urlencoded;

use crate::console::{Answer, Browser, HOSTILE, holds, shows_hostile};
use crate::provider::{Fault, Provider};
use crate::rig::Rig;

const JOBS: &str = "/console/jobs";

async fn rig_with(pool: PgPool, key_login: Option<KeyLogin>) -> (Rig, Provider) {
    let provider = Provider::start().await;
    let rig = Rig::with(pool, |config| {
        provider.configure(config);
        config.operator.key_login_setting = key_login;
    })
    .await;
    provider.change(|mood| mood.clock = Some(rig.clock.clone()));
    (rig, provider)
}

/// Begins a sign-in. Returns the path of the console that the provider sends the browser back to.
async fn begin(browser: &Browser<'_>, provider: &Provider, start: &str) -> String {
    let answer = browser.get(start).await;
    assert_eq!(answer.status, 303, "{answer:?}");
    provider.visit(answer.header("location")).await
}

async fn sign_in(browser: &Browser<'_>, provider: &Provider) -> Answer {
    let back = begin(browser, provider, "/console/sign-in/start?next=/console/jobs").await;
    browser.get(&back).await
}

async fn signed_in<'r>(rig: &'r Rig, provider: &Provider, group: &str) -> Browser<'r> {
    provider.change(|mood| mood.claims["groups"] = json!([group]));
    let browser = Browser::new(rig);
    let answer = sign_in(&browser, provider).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, JOBS),
        "{answer:?}"
    );
    browser
}

async fn entries(rig: &Rig, action: &str) -> Vec<Value> {
    rig.all(&format!("/audit?action={action}"), 10).await
}

/// A sign-in that is refused, with what its page says.
async fn is_refused(rig: &Rig, provider: &Provider, status: u16, parts: &[&str]) {
    let browser = Browser::new(rig);
    let answer = sign_in(&browser, provider).await;
    assert_eq!(answer.status, status, "{answer:?}");
    holds(&answer.html, parts);
    assert_eq!(browser.get(JOBS).await.status, 303, "there is no visit");
}

#[testkit::test]
async fn the_highest_role_of_the_claim_counts(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    let page = Browser::new(&rig)
        .see("/console/sign-in?next=/console/jobs")
        .await;
    holds(
        &page,
        &[
            "Sign in with 127.0.0.1",
            "/console/sign-in/start?next=%2Fconsole%2Fjobs",
        ],
    );
    assert!(!page.contains("type=\"password\""), "{page}");

    for (groups, role) in [
        (json!(["everyone", "support"]), "viewer"),
        (json!("on-call"), "operator"),
        (json!(["support", "engineers"]), "operator"),
        (json!(["support", "leads", "on-call"]), "admin"),
    ] {
        provider.change(|mood| mood.claims["groups"] = groups);
        let browser = Browser::new(&rig);
        let answer = sign_in(&browser, &provider).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, JOBS),
            "{answer:?}"
        );
        holds(&browser.see(JOBS).await, &["Ada Lovelace", role]);
    }
    let log = entries(&rig, "visit.begin").await;
    assert_eq!(log.len(), 4);
    let who = format!("Ada Lovelace <7f3a@{}>", provider.issuer());
    assert_eq!(
        (&log[0]["actor"], &log[0]["details"]["role"]),
        (&json!(who), &json!("admin"))
    );
    assert_eq!(rig.all("/audit?actor=Ada%20Lovelace", 10).await.len(), 4);
}

#[testkit::test]
async fn what_a_person_may_is_what_the_role_may(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    let viewer = signed_in(&rig, &provider, "support").await;
    let fields = [("note", "a test"), ("name", "push")];
    let page = viewer.refused("/console/lanes/push/pause", &fields, 403).await;
    holds(&page, &["needs operator or admin", "your roles"]);

    let operator = signed_in(&rig, &provider, "on-call").await;
    operator.act("/console/lanes/push/pause", &fields).await;
    let log = entries(&rig, "lane.pause").await;
    assert!(
        log[0]["actor"]
            .as_str()
            .unwrap()
            .starts_with("Ada Lovelace <7f3a@"),
        "{log:?}"
    );
    operator.post("/console/sign-out", &[]).await;
    assert_eq!(operator.get(JOBS).await.status, 303);
}

#[testkit::test]
async fn without_a_role_a_page_says_what_was_in_the_claim(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    let hostile = HOSTILE.split(" hx-").next().unwrap();
    provider.change(|mood| mood.claims = json!({"groups": ["everyone", hostile], "name": hostile}));
    let browser = Browser::new(&rig);
    let answer = sign_in(&browser, &provider).await;
    assert_eq!(answer.status, 403);
    shows_hostile(&answer.html);
    holds(
        &answer.html,
        &["<code>groups</code>", "everyone", "operator.oidc.roles"],
    );
    provider.change(|mood| mood.claims = json!({}));
    is_refused(&rig, &provider, 403, &["was empty or was not there"]).await;
    assert!(entries(&rig, "visit").await.is_empty());
}

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
async fn what_is_dangerous_needs_a_person_who_has_just_shown_who_it_is(pool: PgPool) {
    let (rig, provider) = rig_with(pool, Some(KeyLogin::Always)).await;
    provider.change(|mood| mood.authenticated_ago = 301);
    let browser = signed_in(&rig, &provider, "on-call").await;
    let (form, fields) = (
        "/console/lanes/push/pause",
        [("note", "a test"), ("name", "push")],
    );
    let page = browser.refused(form, &fields, 403).await;
    let again = "/console/sign-in/start?again=1&#38;next=%2Fconsole%2Flanes%2Fpush%2Fpause";
    holds(&page, &["Show once more who you are", again]);
    assert!(entries(&rig, "lane.pause").await.is_empty());

    let start = again.replace("&#38;", "&");
    let answer = browser.get(&start).await;
    assert!(answer.header("location").contains("max_age=300"), "{answer:?}");
    let back = provider.visit(answer.header("location")).await;
    provider.change(|mood| mood.authenticated_ago = 400);
    let refused = browser.get(&back).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    holds(&refused.html, &["auth_time of the ID token lies too far back"]);

    provider.change(|mood| mood.authenticated_ago = 1);
    let back = begin(&browser, &provider, &start).await;
    let answer = browser.get(&back).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, form),
        "{answer:?}"
    );
    holds(&browser.see(form).await, &["Nothing was done yet"]);
    browser.act(form, &fields).await;
    assert_eq!(entries(&rig, "lane.pause").await.len(), 1);
    assert_eq!(
        entries(&rig, "visit.end").await.len(),
        1,
        "the visit of before is over"
    );

    rig.clock.advance(TimeDelta::minutes(5));
    browser.refused(form, &fields, 403).await;
    // What is not dangerous needs nothing.
    browser.act("/console/lanes/push/resume", &fields).await;
    let key = rig.key_of(Role::Operator).await;
    let by_key = Browser::with_key(&rig, &key).await;
    by_key.act(form, &fields).await;
}

#[testkit::test]
async fn a_provider_that_does_not_say_when_is_asked_again(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.claims = json!({"auth_time": null}));
    let browser = signed_in(&rig, &provider, "on-call").await;
    browser
        .refused(
            "/console/lanes/push/pause",
            &[("note", "a test"), ("name", "push")],
            403,
        )
        .await;
}

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
async fn discarding_many_needs_a_person_who_has_just_shown_who_it_is(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.authenticated_ago = 301);
    let browser = signed_in(&rig, &provider, "on-call").await;
    let many = "INSERT INTO dead_letters (lane, reason, fingerprint, detail)
        SELECT 'push', 'MALFORMED', 'malformed', 'a test' FROM generate_series(1, 1001)";
    sqlx::query(many).execute(&rig.it.pool).await.unwrap();
    let fields = |action| {
        let number = [("counted", "1001"), ("number", "1001")];
        [
            ("action", action),
            ("lane", "push"),
            ("note", "a test"),
            number[0],
            number[1],
        ]
    };
    let page = browser.refused(JOBS, &fields("discard"), 403).await;
    let form = "next=%2Fconsole%2Fjobs%2Fnew%3Faction%3Ddiscard%26lane%3Dpush";
    holds(&page, &["Show once more who you are", form]);
    let typed = [&fields("discard")[..], &[("perSecond", "7")][..]].concat();
    let page = browser.refused(JOBS, &typed, 403).await;
    holds(&page, &[&format!("{form}%26perSecond%3D7")]);
    assert!(entries(&rig, "dead-letter-job").await.is_empty());
    browser.act(JOBS, &fields("replay")).await;
}

/// Short enough to be waited for.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(600);

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

#[testkit::test]
async fn an_administrator_ends_the_visits_of_a_person(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    let ada = signed_in(&rig, &provider, "on-call").await;
    provider.change(|mood| mood.claims["sub"] = json!("other"));
    let other = signed_in(&rig, &provider, "on-call").await;
    let person = format!("7f3a@{}", provider.issuer());
    let end = async |key: &str, query: &[(&str, &str)]| {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(query)
            .finish();
        let request = rig.request("DELETE", &format!("/visits?{query}"));
        request.bearer_auth(key).send().await.unwrap()
    };
    assert_eq!(end(&rig.key, &[("person", &person)]).await.status(), 403);
    let admin = rig.key_of(Role::Admin).await;
    assert_eq!(end(&admin, &[]).await.status(), 422);
    assert_eq!(end(&admin, &[("person", "a\nb")]).await.status(), 422);
    let answer = end(&admin, &[("person", &person), ("note", "a test")]).await;
    let answer = crate::rig::answer(answer, 200).await;
    assert_eq!(answer, json!({"ended": 1}));
    assert_eq!(ada.get(JOBS).await.status, 303, "at once, where it was ended");
    assert_eq!(other.get(JOBS).await.status, 200);
    let log = entries(&rig, "visit.revoke").await;
    assert_eq!(
        (log.len(), &log[0]["subject"], &log[0]["note"]),
        (1, &json!(format!("person/{person}")), &json!("a test"))
    );
}

#[testkit::test]
async fn a_visit_ends_with_the_value_that_made_its_role(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    let browser = signed_in(&rig, &provider, "engineers").await;
    let granted: Vec<String> = sqlx::query_scalar("SELECT unnest(granted_by) FROM visits")
        .fetch_all(&rig.it.pool)
        .await
        .unwrap();
    assert_eq!(granted, ["engineers"]);
    // As if the configuration had another one since.
    sqlx::query("UPDATE visits SET granted_by = '{support}'")
        .execute(&rig.it.pool)
        .await
        .unwrap();
    crate::console::ended(&browser).await;
}

#[testkit::test]
async fn what_is_dangerous_at_once_is_so_in_slices(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.authenticated_ago = 301);
    let browser = signed_in(&rig, &provider, "on-call").await;
    let letters = "INSERT INTO dead_letters (lane, reason, fingerprint, detail)
        SELECT lane, 'MALFORMED', 'malformed', 'a test' FROM generate_series(1, 600), unnest(ARRAY ['push', 'reseller']) lane";
    sqlx::query(letters).execute(&rig.it.pool).await.unwrap();
    let slice = |lane| {
        [
            ("action", "discard"),
            ("lane", lane),
            ("note", "a test"),
            ("counted", "600"),
            ("number", "600"),
        ]
    };
    browser.act(JOBS, &slice("push")).await;
    let page = browser.refused(JOBS, &slice("reseller"), 403).await;
    holds(&page, &["Show once more who you are"]);
    assert_eq!(entries(&rig, "dead-letter-job.create").await.len(), 1);
    // An hour later it is another matter.
    rig.clock.advance(TimeDelta::minutes(25));
    browser.see(JOBS).await;
    rig.clock.advance(TimeDelta::minutes(25));
    browser.see(JOBS).await;
    rig.clock.advance(TimeDelta::minutes(11));
    browser.act(JOBS, &slice("reseller")).await;
}

#[testkit::test]
async fn pausing_many_is_as_dangerous_as_pausing_a_lane(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.authenticated_ago = 301);
    let browser = signed_in(&rig, &provider, "on-call").await;
    let who = format!("Ada Lovelace <7f3a@{}>", provider.issuer());
    let paused = "INSERT INTO audit_log (id, at, actor, action, subject)
        SELECT overlay(gen_random_uuid()::text PLACING left(replace($1::uuid::text, '-', ''), 8) || '-' ||
                       substr(replace($1::uuid::text, '-', ''), 9, 4) FROM 1 FOR 13)::uuid, $2, $3, 'reseller.pause', 'reseller/r' || n
        FROM generate_series(1, 10) n";
    sqlx::query(paused)
        .bind(uuid_at(rig.now()))
        .bind(rig.now())
        .bind(who)
        .execute(&rig.it.pool)
        .await
        .unwrap();
    let page = browser
        .refused("/console/resellers/acme/pause", &[("note", "a test")], 403)
        .await;
    holds(&page, &["Show once more who you are"]);
}

fn uuid_at(at: chrono::DateTime<chrono::Utc>) -> uuid::Uuid {
    let seconds = at.timestamp().unsigned_abs();
    uuid::Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, 0))
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

#[testkit::test]
async fn roles_are_plain_names_whatever_they_hold(pool: PgPool) {
    let provider = Provider::start().await;
    let rig = Rig::with(pool, |config| {
        provider.configure(config);
        config.operator.oidc.roles.operator = vec!["{NULL}".to_owned(), "on-call".to_owned()];
    })
    .await;
    provider.change(|mood| mood.clock = Some(rig.clock.clone()));
    let browser = signed_in(&rig, &provider, "{NULL}").await;
    holds(&browser.see(JOBS).await, &["operator"]);
    for other in [
        "NULL",
        "{on-call}",
        "on-call\u{0}",
        "on-call\n",
        "\u{202e}on-call",
        " on-call",
        "ON-CALL",
    ] {
        provider.change(|mood| mood.claims["groups"] = json!([other]));
        is_refused(&rig, &provider, 403, &["You have no role here"]).await;
    }
    provider.change(|mood| mood.claims["groups"] = json!({"on-call": null}));
    is_refused(&rig, &provider, 403, &["was empty or was not there"]).await;
}

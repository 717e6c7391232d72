//! Visits to the console: who gets in, for how long, and from where.

use chrono::TimeDelta;
use domain::key::Role;
use reqwest::header::SET_COOKIE;
use serde_json::json;
use store::{Act, IDLE_MINUTES, VISIT_HOURS};
use testkit::key_of_the_reseller;

use crate::console::{Browser, HOSTILE, ended, entries, holds};
use crate::rig::Rig;

/// Pages that anyone with a visit may see.
const PAGES: [&str; 3] = ["/console", "/console/dead-letters?lane=push", "/console/jobs"];

#[testkit::test]
async fn without_a_visit_a_page_leads_to_signing_in_and_then_on(rig: &Rig) {
    let browser = Browser::new(rig);
    for page in PAGES {
        let answer = browser.get(page).await;
        assert_eq!(answer.status, 303, "{page}");
        let sign_in = answer.header("location").to_owned();
        assert!(
            sign_in.starts_with("/console/sign-in?next=%2Fconsole"),
            "{sign_in}"
        );
    }
    let answer = browser.get(PAGES[1]).await;
    let form = browser.see(answer.header("location")).await;
    holds(&form, &["/console/dead-letters?lane=push", "type=\"password\""]);
    let answer = browser.sign_in(&rig.key, PAGES[1]).await;
    assert_eq!((answer.status, answer.header("location")), (303, PAGES[1]));
    let cookie = answer.headers[SET_COOKIE].to_str().unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.starts_with("__Host-pr_console="),
        "{cookie}"
    );
    assert!(!cookie.contains(&rig.key), "{cookie}");
    let page = browser.see(PAGES[1]).await;
    holds(&page, &["operator"]);
    let elsewhere = browser.sign_in(&rig.key, "https://evil.example/").await;
    assert_eq!(elsewhere.header("location"), "/console");
}

#[testkit::test]
async fn a_form_that_is_sent_after_its_visit_does_nothing_and_is_found_again(rig: &Rig) {
    let browser = Browser::new(rig);
    let act = "/console/lanes/push/pause";
    let answer = browser.post(act, &[("name", "push"), ("note", "a")]).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, "/console/sign-in?next=%2Fconsole%2Flanes%2Fpush%2Fpause")
    );
    let answer = browser.sign_in(&rig.key, act).await;
    assert_eq!(answer.header("location"), act);
    holds(
        &browser.see(act).await,
        &[
            "<p class=\"flash warn\" role=\"status\">Nothing was done: your visit had ended",
            "Pause the push lane",
        ],
    );
    assert!(entries(rig, "lane.pause").await.is_empty());
}

#[testkit::test]
async fn keys_that_are_wrong_or_of_others_do_not_get_in(rig: &Rig) {
    let browser = Browser::new(rig);
    let unknown = format!("pr_{}", "0".repeat(64));
    for wrong in ["", "nonsense", "pr_\u{1f600}", unknown.as_str(), HOSTILE] {
        let answer = browser.sign_in(wrong, "/console/jobs").await;
        assert_eq!(answer.status, 401, "{wrong}: {answer:?}");
        holds(&answer.html, &["no API key", "/console/jobs", "aria-invalid"]);
    }
    let (reseller, ingest) = (
        key_of_the_reseller(&rig.it.store, "acme").await,
        rig.key_of(Role::Ingest).await,
    );
    for other in [reseller, ingest] {
        let answer = browser.sign_in(&other, "/console").await;
        assert_eq!(answer.status, 403, "{answer:?}");
        assert!(!answer.html.contains(&other), "a key is shown");
    }
    assert_eq!(browser.get("/console").await.status, 303);
    assert!(entries(rig, "visit").await.is_empty());
}

#[testkit::test]
async fn a_visit_ends_by_signing_out_and_the_log_tells_of_both(rig: &Rig) {
    let (browser, other) = (
        Browser::with_key(rig, &rig.key).await,
        Browser::with_key(rig, &rig.key).await,
    );
    let stolen = browser.request("GET", "/console");
    assert_eq!(browser.get("/console").await.status, 200);
    let answer = browser.post("/console/sign-out", &[]).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, "/console/sign-in")
    );
    assert_eq!(browser.get("/console").await.status, 303);
    let stolen = other.send(stolen).await;
    assert_eq!(stolen.status, 303, "the cookie is worth nothing any more");
    assert_eq!(
        other.get("/console").await.status,
        200,
        "only this visit has ended"
    );

    let log = entries(rig, "visit").await;
    let actions: Vec<_> = log
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["visit.end", "visit.begin", "visit.begin"]);
    assert_eq!(
        (&log[0]["subject"], &log[0]["actor"]),
        (&log[2]["subject"], &log[2]["actor"])
    );
    assert!(log[0]["actor"].as_str().unwrap().starts_with("test"), "{log:?}");
}

#[testkit::test]
async fn a_visit_ends_with_its_key_by_idling_and_by_its_time(rig: &Rig) {
    let revoked = rig.key_of(Role::Viewer).await;
    let (revoked, idle) = (
        Browser::with_key(rig, &revoked).await,
        Browser::with_key(rig, &rig.key).await,
    );
    for browser in [&revoked, &idle] {
        assert_eq!(browser.get("/console").await.status, 200);
    }
    let viewers = rig.it.store.list_api_keys().await.unwrap();
    let key = viewers.iter().find(|key| key.roles == [Role::Viewer]).unwrap();
    let act = Act {
        by: "test",
        note: None,
        at: rig.now(),
    };
    assert!(rig.it.store.revoke_api_key(key.id, act).await.unwrap());
    let began = tokio::time::Instant::now();
    ended(&revoked).await;
    assert!(began.elapsed().as_secs() < 60, "it took {:?}", began.elapsed());

    rig.clock
        .advance(TimeDelta::minutes(IDLE_MINUTES) + TimeDelta::seconds(1));
    ended(&idle).await;

    let busy = Browser::with_key(rig, &rig.key).await;
    let end = rig.now() + TimeDelta::hours(VISIT_HOURS);
    // As one who looks every few minutes for 12 hours, without waiting until what is remembered is forgotten each time.
    sqlx::query("UPDATE visits SET last_seen_at = $1 WHERE ended_at IS NULL")
        .bind(end)
        .execute(&rig.it.pool)
        .await
        .unwrap();
    rig.clock.advance(end - rig.now());
    ended(&busy).await;
}

#[testkit::test]
async fn a_live_page_by_itself_does_not_keep_a_visit_going(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    rig.clock.advance(TimeDelta::minutes(IDLE_MINUTES - 1));
    let tick = browser.request("GET", "/console").header("x-postrider-tick", "1");
    assert_eq!(browser.send(tick).await.status, 200);
    let seen = "SELECT last_seen_at FROM visits WHERE ended_at IS NULL";
    let seen = async || {
        let at: chrono::DateTime<chrono::Utc> =
            sqlx::query_scalar(seen).fetch_one(&rig.it.pool).await.unwrap();
        at
    };
    let before = seen().await;
    assert!(before < rig.now() - TimeDelta::minutes(1));
    assert_eq!(browser.get("/console").await.status, 200);
    assert!(
        seen().await > before,
        "what the tick found does not stand for a page"
    );
}

#[testkit::test]
async fn what_another_site_sends_is_refused(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "none"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("x-nothing", "said"),
    ] {
        for path in [
            "/console/sign-out",
            "/console/sign-in",
            "/console/preferences",
            "/console/jobs",
        ] {
            let request = browser
                .request("POST", path)
                .header(name, value)
                .form(&[("key", &rig.key)]);
            let answer = browser.send(request).await;
            assert_eq!(answer.status, 403, "{path}, {name}: {value}");
            holds(&answer.html, &["another site"]);
        }
    }
    assert_eq!(browser.get("/console").await.status, 200, "the visit goes on");
    let origin = rig.url("");
    let request = browser
        .request("POST", "/console/sign-out")
        .header("origin", origin);
    assert_eq!(
        browser.send(request).await.status,
        303,
        "of a browser that only says the origin"
    );
}

#[testkit::test]
async fn cookies_are_for_pages_and_keys_for_the_api(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    for path in ["/dead-letters", "/status", "/audit"] {
        let answer = browser.request("GET", path).send().await.unwrap();
        assert_eq!(answer.status(), 401, "{path}");
    }
    let job = json!({"action": "replay", "filter": {}});
    let act = browser.request("POST", "/dead-letters/jobs").json(&job);
    assert_eq!(act.send().await.unwrap().status(), 401);
    let stranger = Browser::new(rig);
    for path in PAGES {
        let request = stranger.request("GET", path).bearer_auth(&rig.key);
        assert_eq!(stranger.send(request).await.status, 303, "{path}");
    }
}

//! What every page of the console is made of: what is copied, compressed, kept and shared, and what a browser reports.

use std::time::Duration;

use domain::key::Role;
use futures::future::join_all;
use reqwest::RequestBuilder;
use serde_json::json;
use sqlx::PgPool;
use testkit::eventually;

use crate::console::{Browser, HOSTILE, holds};
use crate::rig::Rig;

#[testkit::test]
async fn what_is_copied_or_sent_back_is_as_it_was_written(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    let answer = browser.get("/console").await;
    assert_eq!(answer.header("referrer-policy"), "same-origin");
    let page = browser.see("/console/audit?subject=a%E2%80%AEb").await;
    holds(&page, &["value=\"a\u{202e}b\""]);
    let act = "/console/lanes/push/pause";
    let fields = [("name", "push"), ("note", "one\r\ntwo \u{202e}three")];
    let (_, page) = browser.act(act, &fields).await;
    holds(&page, &["one\ntwo \u{fffd}three"]);
    assert!(
        !page.contains('\u{2067}') && !page.contains('\u{202e}') && !page.contains('\r'),
        "{page}"
    );
    let note: Option<String> = sqlx::query_scalar("SELECT note FROM pauses WHERE key = 'push'")
        .fetch_one(&rig.it.pool)
        .await
        .unwrap();
    assert_eq!(note.as_deref(), Some("one\ntwo \u{202e}three"));
}

#[testkit::test]
async fn a_page_that_has_not_changed_is_not_sent_again(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    let page = browser.get("/console/jobs").await;
    let tag = page.header("etag").to_owned();
    assert!(tag.starts_with("W/\""), "{page:?}");
    let request = browser
        .request("GET", "/console/jobs")
        .header("if-none-match", &tag);
    let same = browser.send(request).await;
    assert_eq!((same.status, same.html.as_str()), (304, ""));
    let request = browser
        .request("GET", "/console/jobs")
        .header("if-none-match", "\"other\"");
    assert_eq!(browser.send(request).await.status, 200);
}

#[testkit::test]
async fn a_page_is_compressed_for_the_console_itself_and_not_for_another_site_or_a_form(rig: &Rig) {
    let browser = Browser::of(rig, Role::Operator).await;
    let request = |method: &str, site: &str| {
        let request = browser.request(method, "/console/lanes/push/pause");
        request
            .header("accept-encoding", "gzip, br")
            .header("sec-fetch-site", site)
    };
    let answered = async |request: RequestBuilder| {
        let answer = request.send().await.unwrap();
        let told = answer.headers().get("content-encoding");
        (answer.status().as_u16(), told.is_some_and(|it| it == "gzip"))
    };
    assert_eq!(answered(request("GET", "same-origin")).await, (200, true));
    assert_eq!(answered(request("GET", "cross-site")).await, (200, false));
    // No name is typed, so that the form comes back.
    let form = request("POST", "same-origin").form(&[("note", "why"), ("name", "")]);
    assert_eq!(answered(form).await, (422, false));
}

#[testkit::test]
async fn what_is_missing_is_a_page_too_and_empty_fields_leave_the_address(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    let missing = browser.get("/console/nothing").await;
    assert_eq!(missing.status, 404);
    holds(
        &missing.html,
        &["no page at this address", "aria-label=\"Places\""],
    );
    let answer = browser.get("/console/dead-letters?lane=push&reason=&q=").await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, "/console/dead-letters?lane=push")
    );
}

#[testkit::test]
async fn a_filter_keeps_how_many_rows_the_reader_has_chosen(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    let field = "<input type=\"hidden\" name=\"limit\" value=\"100\">";
    for list in [
        "/console/audit",
        "/console/dead-letters",
        "/console/dead-letters/list",
        "/console/jobs",
        "/console/resellers",
        "/console/waiting",
    ] {
        let page = browser.see(&format!("{list}?limit=100")).await;
        assert!(page.contains(field), "{list}: {page}");
        assert!(!browser.see(list).await.contains(field), "{list}");
    }
}

#[testkit::test]
async fn preferences_are_kept_and_lead_back(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    let fields = [
        ("theme", "dark"),
        ("tz", "Asia/Kolkata"),
        ("back", "/console/jobs"),
    ];
    let (to, page) = browser.act("/console/preferences", &fields).await;
    assert_eq!(to, "/console/jobs");
    holds(&page, &["data-theme=\"dark\"", "data-tz=\"Asia/Kolkata\""]);
    // Where it is not known who looks as well.
    holds(&browser.see("/console/sign-in").await, &["data-theme=\"dark\""]);
    let fields = [("theme", HOSTILE), ("tz", HOSTILE), ("back", "//evil.example")];
    let (to, page) = browser.act("/console/preferences", &fields).await;
    assert_eq!(to, "/console");
    holds(&page, &["data-tz=\"Asia/Kolkata\""]);
    let form = browser.see("/console/preferences").await;
    holds(
        &form,
        &[
            "value=\"Asia/Kolkata\"",
            "value=\"comfortable\"",
            "<h1>Preferences</h1>",
        ],
    );
    let fields = [
        ("theme", "system"),
        ("density", "comfortable"),
        ("keys", "off"),
        ("live", "off"),
        ("back", "/console/preferences"),
    ];
    let (to, page) = browser.act("/console/preferences", &fields).await;
    assert_eq!(to, "/console/preferences");
    holds(
        &page,
        &[
            "data-density=\"comfortable\"",
            "value=\"off\" selected",
            "value=\"comfortable\" selected",
        ],
    );
    assert!(!page.contains("data-theme"), "as the system has it: {page}");
}

#[testkit::test]
async fn an_installation_without_the_console_has_no_pages(pool: PgPool) {
    let rig = Rig::with(pool, |config| config.operator.console = false).await;
    for path in ["/console", "/console/sign-in", "/console/jobs"] {
        let answer = rig.request("GET", path).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
    }
    rig.see("/status").await;
}

#[testkit::test]
async fn pages_that_follow_share_one_look_at_the_system(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    let tick = async || {
        let request = browser.request("GET", "/console").header("x-postrider-tick", "1");
        browser.send(request).await
    };
    // So that the visit is remembered, and nothing else is looked up.
    tick().await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let mut holding = rig.it.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE processes IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *holding)
        .await
        .unwrap();
    // Those that read: what the service writes of itself every few seconds waits as well.
    let waiting = async || -> i64 {
        let asked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'processes'::regclass AND mode = 'AccessShareLock'";
        sqlx::query_scalar(asked).fetch_one(&rig.it.pool).await.unwrap()
    };
    let ticks = join_all((0..30).map(|_| tick()));
    let watch = async {
        eventually("a look at the system", async || {
            (waiting().await > 0).then_some(())
        })
        .await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let looks = waiting().await;
        holding.rollback().await.unwrap();
        looks
    };
    let (answers, looks) = tokio::join!(ticks, watch);
    assert_eq!(looks, 1, "30 pages ask at once");
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");

    // Nor is it looked again within the second, while a person who opens the page sees what is. A machine that takes longer than a
    // second from one tick to the next gets another chance.
    let holding = eventually("a tick without a look of its own", async || {
        tick().await;
        let mut holding = rig.it.pool.begin().await.unwrap();
        sqlx::query("LOCK TABLE processes IN ACCESS EXCLUSIVE MODE")
            .execute(&mut *holding)
            .await
            .unwrap();
        let look = async {
            while waiting().await == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            answer = tick() => (answer.status == 200).then_some(holding),
            () = look => None,
        }
    })
    .await;
    let opened = browser.see("/console");
    let watch = async {
        eventually("a look for a person", async || {
            (waiting().await == 1).then_some(())
        })
        .await;
        holding.rollback().await.unwrap();
    };
    tokio::join!(opened, watch);
}

#[testkit::test]
async fn violations_of_the_policy_are_taken_and_bounded(rig: &Rig) {
    let browser = Browser::new(rig);
    let policy = browser.get("/console/sign-in").await;
    let endpoint = "/console/policy-violations";
    assert!(
        policy
            .header("content-security-policy")
            .contains(&format!("report-uri {endpoint}"))
    );
    let report = |body: String| {
        browser
            .request("POST", endpoint)
            .header("content-type", "application/csp-report")
            .body(body)
    };
    let one =
        json!({"csp-report": {"effective-directive": "script-src", "blocked-uri": "inline"}}).to_string();
    let several = json!([{"type": "csp-violation", "body": {"blockedURL": "eval"}}]).to_string();
    for (body, status) in [
        (one.clone(), 204),
        (several, 204),
        ("{}".to_owned(), 400),
        ("x".repeat(20_000), 413),
    ] {
        assert_eq!(browser.send(report(body.clone())).await.status, status, "{body}");
    }
    let answers = join_all((0..40).map(|_| browser.send(report(one.clone())))).await;
    assert!(answers.iter().filter(|answer| answer.status == 429).count() > 10);
}

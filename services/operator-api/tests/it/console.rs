//! The console as a browser sees it: who gets in, for how long, and what every page has.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use chrono::TimeDelta;
use domain::key::Role;
use futures::future::join_all;
use reqwest::header::{HeaderMap, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use sqlx::PgPool;
use store::{Act, IDLE_MINUTES, VISIT_HOURS};
use testkit::{eventually, key_of_the_reseller};

use crate::rig::Rig;

/// What strangers may write where they can write anything: markup, the end of an attribute, an attribute of scripts, and a mark that turns
/// the direction of text.
pub(crate) const HOSTILE: &str =
    r#"<script>alert(1)</script>"><img src=x onerror=alert(1)>' hx-get="/x" &amp;"#;

/// A browser: it keeps cookies and follows nothing by itself.
pub(crate) struct Browser<'r> {
    rig: &'r Rig,
    client: Client,
    cookies: Mutex<BTreeMap<String, String>>,
}

/// What a browser was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) html: String,
}

impl<'r> Browser<'r> {
    /// One that has not signed in.
    pub(crate) fn new(rig: &'r Rig) -> Self {
        Self {
            rig,
            client: Client::builder().redirect(Policy::none()).build().unwrap(),
            cookies: Mutex::default(),
        }
    }

    /// One whose visit began with this key.
    pub(crate) async fn with_key(rig: &'r Rig, key: &str) -> Self {
        let browser = Self::new(rig);
        let answer = browser.sign_in(key, "/console").await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, "/console"),
            "{answer:?}"
        );
        browser
    }

    /// One whose visit began with a key of this role.
    pub(crate) async fn of(rig: &'r Rig, role: Role) -> Self {
        let key = rig.key_of(role).await;
        Self::with_key(rig, &key).await
    }

    /// Fills in the form to sign in.
    pub(crate) async fn sign_in(&self, key: &str, next: &str) -> Answer {
        self.post("/console/sign-in", &[("key", key), ("next", next)])
            .await
    }

    /// Follows a link of the console itself.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        let request = self.request("GET", path).header("sec-fetch-site", "same-origin");
        self.send(request).await
    }

    /// Sends a form.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let request = self.request("POST", path).header("sec-fetch-site", "same-origin");
        self.send(request.form(fields)).await
    }

    /// What a cookie holds; empty without one.
    pub(crate) fn cookie(&self, name: &str) -> String {
        let cookies = self.cookies.lock().unwrap();
        cookies.get(name).cloned().unwrap_or_default()
    }

    /// Has a browser that something else has given it a cookie.
    pub(crate) fn plant(&self, name: &str, value: &str) {
        let mut cookies = self.cookies.lock().unwrap();
        cookies.insert(name.to_owned(), value.to_owned());
    }

    /// The HTML of a page that is there.
    pub(crate) async fn see(&self, path: &str) -> String {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.html);
        answer.html
    }

    /// Sends a form that is accepted. Returns where it leads, and the page there, which says what was done.
    pub(crate) async fn act(&self, path: &str, fields: &[(&str, &str)]) -> (String, String) {
        let answer = self.post(path, fields).await;
        assert_eq!(answer.status, 303, "{path}: {}", answer.html);
        let to = answer.header("location").to_owned();
        let page = self.see(&to).await;
        (to, page)
    }

    /// Sends a form that is refused. Returns the page that says why.
    pub(crate) async fn refused(&self, path: &str, fields: &[(&str, &str)], status: u16) -> String {
        let answer = self.post(path, fields).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.html);
        answer.html
    }

    /// A request with the cookies.
    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let request = self.client.request(method.parse().unwrap(), self.rig.url(path));
        let cookies = self.cookies.lock().unwrap();
        let pairs: Vec<_> = cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        request.header("cookie", pairs.join("; "))
    }

    /// Sends a request, and keeps the cookies that are answered.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Answer {
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        for cookie in headers.get_all(SET_COOKIE) {
            self.keep(cookie.to_str().unwrap());
        }
        let answer = Answer {
            status,
            headers,
            html: answer.text().await.unwrap(),
        };
        answer.check();
        answer
    }

    fn keep(&self, cookie: &str) {
        let (pair, rest) = cookie.split_once(';').unwrap();
        let (name, value) = pair.split_once('=').unwrap();
        assert!(
            rest.contains("Secure") && rest.contains("SameSite=Lax"),
            "{cookie}"
        );
        let mut cookies = self.cookies.lock().unwrap();
        if rest.contains("Max-Age=0") {
            cookies.remove(name);
        } else {
            cookies.insert(name.to_owned(), value.to_owned());
        }
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// What every answer of the console has.
    fn check(&self) {
        let policy = self.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{self:?}"
        );
        assert_eq!(self.header("x-content-type-options"), "nosniff", "{self:?}");
        if self.header("content-type").starts_with("text/html") {
            check_html(&self.html);
        }
    }
}

/// Checks what every page has, and what none may have: nothing inline, which the policy would refuse, and no text of strangers as markup.
pub(crate) fn check_html(html: &str) {
    assert_eq!(
        html.matches("<h1").count(),
        1,
        "one heading of the first level: {html}"
    );
    assert!(html.contains("<title>"), "{html}");
    for never in [
        "<script>",
        " style=",
        " onclick=",
        " hx-get=\"",
        "javascript:",
        "<img src=x",
        "<style",
    ] {
        assert!(!html.contains(never), "{never} stands in {html}");
    }
    for form in html.split("<form ").skip(1) {
        let form = form.split("</form>").next().unwrap();
        // The gallery's forms do nothing.
        let does_nothing = form.contains("action=\"/console/gallery\"");
        if form.contains("<button class=\"btn danger\"") && !does_nothing {
            let note = form.split("<textarea ").nth(1).unwrap_or_default();
            let note = note.split('>').next().unwrap();
            let is_needed = note.contains("name=\"note\"") && note.contains(" required");
            assert!(is_needed, "a dangerous act needs a note: {form}");
        }
    }
    for (at, _) in html.match_indices(" id=\"") {
        let id = html[at + 5..].split('"').next().unwrap();
        let times = html.matches(&format!(" id=\"{id}\"")).count();
        assert_eq!(times, 1, "the id {id:?} stands {times} times");
    }
}

/// Checks that a page shows [`HOSTILE`] as text.
pub(crate) fn shows_hostile(html: &str) {
    check_html(html);
    let escaped = ["&lt;script&gt;alert(1)", "&#60;script&#62;alert(1)"];
    assert!(escaped.iter().any(|text| html.contains(text)), "{html}");
}

/// Checks that a page holds all of these.
pub(crate) fn holds(html: &str, parts: &[&str]) {
    for part in parts {
        assert!(html.contains(part), "{part:?} is missing: {html}");
    }
}

async fn entries(rig: &Rig, action: &str) -> Vec<Value> {
    rig.all(&format!("/audit?action={action}"), 10).await
}

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

/// Waits until a visit is over. What was looked up is remembered for 5 seconds.
pub(crate) async fn ended(browser: &Browser<'_>) {
    eventually("the visit to end", async || {
        let answer = browser.get("/console").await;
        (answer.status == 303).then_some(())
    })
    .await;
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

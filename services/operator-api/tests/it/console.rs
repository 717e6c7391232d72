//! The console as a browser sees it: a browser, and what every page has.

use std::collections::BTreeMap;
use std::sync::Mutex;

use domain::key::Role;
use reqwest::header::{HeaderMap, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder};
use serde_json::Value;
use testkit::eventually;
use uuid::Uuid;

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

/// The entries of this action in the audit log.
pub(crate) async fn entries(rig: &Rig, action: &str) -> Vec<Value> {
    rig.all(&format!("/audit?action={action}"), 10).await
}

/// Subjects and notes of these entries.
pub(crate) async fn acts(rig: &Rig, action: &str) -> Vec<(String, String)> {
    let log = entries(rig, action).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    log.iter()
        .map(|it| (text(&it["subject"]), text(&it["note"])))
        .collect()
}

/// Changes the row that has this identifier as no operation does.
pub(crate) async fn change(rig: &Rig, sql: &'static str, id: Uuid, text: &str) {
    let changing = sqlx::query(sql).bind(id).bind(text);
    changing.execute(&rig.it.pool).await.unwrap();
}

/// Waits until a visit is over. What was looked up is remembered for 5 seconds.
pub(crate) async fn ended(browser: &Browser<'_>) {
    eventually("the visit to end", async || {
        let answer = browser.get("/console").await;
        (answer.status == 303).then_some(())
    })
    .await;
}

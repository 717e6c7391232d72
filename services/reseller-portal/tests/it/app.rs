//! The dashboard as a browser sees it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use reqwest::header::{HeaderMap, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::portal::{Portal, answer};

/// Everything that a visit can be allowed.
pub(crate) const ALL: [&str; 6] = [
    "bodies",
    "manage",
    "resend",
    "secrets.reveal",
    "secrets.rotate",
    "quota",
];

/// What strangers may write where they can write anything: markup, the end of an attribute, an attribute of scripts.
pub(crate) const HOSTILE: &str =
    r#"<script>alert(1)</script>"><img src=x onerror=alert(1)>' hx-get="/x" &amp;"#;

/// That a page shows it as text.
pub(crate) fn is_safe(page: &str) {
    assert!(!page.contains("<script>alert"), "{page}");
    assert!(!page.contains("<img src=x"), "{page}");
    assert_eq!(page.matches("<h1").count(), 1, "{page}");
}

/// A browser: it keeps cookies and follows nothing by itself.
pub(crate) struct Browser<'p> {
    portal: &'p Portal,
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

impl Answer {
    /// A header's text; empty where it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }
}

/// The link that this request makes with acme's key.
pub(crate) async fn link(portal: &Portal, request: &Value) -> String {
    let made = portal.sent("POST", "/portal-links", request, 201).await;
    made["url"].as_str().unwrap().to_owned()
}

/// The token of a link.
pub(crate) fn token_of(link: &str) -> &str {
    link.split_once("/app/enter#t=").unwrap().1
}

/// A browser in a visit to acme's dashboard that may do this beside looking.
pub(crate) async fn entered<'p>(portal: &'p Portal, capabilities: &[&str]) -> Browser<'p> {
    entered_by(portal, &portal.key, capabilities).await
}

/// A browser in a visit whose link was made with this key.
pub(crate) async fn entered_by<'p>(portal: &'p Portal, key: &str, capabilities: &[&str]) -> Browser<'p> {
    let request = json!({
        "person": { "id": "user-17", "name": "Anna Ozola" }, "capabilities": capabilities, "authTime": portal.now(),
    });
    let make = portal.request("POST", "/portal-links").bearer_auth(key);
    let made = answer(make.json(&request).send().await.unwrap(), 201).await;
    let browser = Browser::new(portal);
    let entered = browser.enter(token_of(made["url"].as_str().unwrap())).await;
    assert_eq!(
        (entered.status, entered.header("location")),
        (303, "/app"),
        "{entered:?}"
    );
    browser
}

impl<'p> Browser<'p> {
    /// One without a visit.
    pub(crate) fn new(portal: &'p Portal) -> Self {
        Self {
            portal,
            client: Client::builder().redirect(Policy::none()).build().unwrap(),
            cookies: Mutex::default(),
        }
    }

    /// Does what the script of a link does.
    pub(crate) async fn enter(&self, token: &str) -> Answer {
        self.post("/app/enter", &[("token", token)]).await
    }

    /// Asks for a page.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request("GET", path)).await
    }

    /// Sends a form.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let request = self.request("POST", path).header("sec-fetch-site", "same-origin");
        self.send(request.form(fields)).await
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
        let url = format!("http://{}{path}", self.portal.address);
        let cookies = self.cookies.lock().unwrap();
        let pairs: Vec<_> = cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        self.client
            .request(method.parse().unwrap(), url)
            .header("cookie", pairs.join("; "))
    }

    /// Sends a request, and keeps the cookies that are answered.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Answer {
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        for cookie in headers.get_all(SET_COOKIE) {
            let (pair, rest) = cookie.to_str().unwrap().split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            let mut cookies = self.cookies.lock().unwrap();
            if rest.contains("Max-Age=0") {
                cookies.remove(name);
            } else {
                cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let html = answer.text().await.unwrap();
        Answer {
            status,
            headers,
            html,
        }
    }
}

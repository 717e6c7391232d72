//! All services in one process, with keys for them: the reseller lane as its users meet it.

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use testkit::{Installation, eventually};

use crate::postrider::{Running, key_of, postrider, until_accepted, until_ready};

const RESELLER: &str = "acme";

pub(crate) struct Lane {
    _process: Running,
    client: Client,
    ingest: (String, String),
    portal: (String, String),
}

impl Lane {
    pub(crate) async fn start(it: &Installation) -> Self {
        lifecycle::crypto::install_default_provider();
        let process = postrider("up").within(it).with_reseller_lane().start();
        let url = |message| format!("http://{}", process.address_logged_with(message));
        let admin = url("serving /healthz, /readyz and /metrics");
        let (ingest, portal) = (url("listening"), url("listening"));
        until_ready(admin.trim_start_matches("http://")).await;
        let key = |role: &str| key_of(&it.pool, role);
        Self {
            _process: process,
            client: Client::builder().no_proxy().build().expect("a client"),
            ingest: (ingest, key("ingest")),
            portal: (portal, key(&format!("reseller --reseller {RESELLER}"))),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.portal(Method::GET, path, None).await.1
    }

    /// The answer, which must be a success. With `null` there is no body.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.portal(Method::POST, path, Some(body)).await;
        assert!(status.is_success(), "{path} was answered {status}: {answer}");
        answer
    }

    /// Asks for something that may come too early.
    pub(crate) async fn ask(&self, path: &str) {
        self.portal(Method::POST, path, None).await;
    }

    pub(crate) async fn delete(&self, path: &str) {
        let (status, answer) = self.portal(Method::DELETE, path, None).await;
        assert!(status.is_success(), "{path} was answered {status}: {answer}");
    }

    async fn portal(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let (url, key) = &self.portal;
        let mut request = self
            .client
            .request(method, format!("{url}{path}"))
            .bearer_auth(key);
        if let Some(body) = body.filter(|body| !body.is_null()) {
            request = request.json(&body);
        }
        let response = request.send().await.expect("the portal answers");
        let status = response.status();
        let bytes = response.bytes().await.expect("a body");
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Reports an event that happened at this time.
    pub(crate) async fn report(&self, id: &str, event_type: &str, occurred_at: &str, data: &Value) {
        let (url, key) = &self.ingest;
        let event = json!({
            "eventId": id, "type": event_type, "resellerId": RESELLER, "occurredAt": occurred_at, "data": data,
        });
        let request = self
            .client
            .post(format!("{url}/events"))
            .json(&event)
            .bearer_auth(key);
        // It has a name, so that it may be asked again for the same.
        until_accepted(request).await;
    }

    /// The notification of an event to a subscription, once it has ended: its identifier and its status.
    pub(crate) async fn ended(&self, subscription: &str, event: &str) -> (String, String) {
        let path = format!("/subscriptions/{subscription}/notifications");
        eventually("the notification to end", async || {
            let list = self.get(&path).await;
            let rows = list["items"].as_array()?;
            let row = rows.iter().find(|row| row["eventId"] == event)?;
            let text = |field: &str| row[field].as_str().expect("a text").to_owned();
            (!row["finishedAt"].is_null()).then(|| (text("id"), text("status")))
        })
        .await
    }
}

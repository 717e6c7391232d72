//! The reseller portal as its callers see it.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::{Client, Method, RequestBuilder};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::problem::Refusal;
use crate::web;

/// Longer than the service takes for its own "not now".
const LIMIT: Duration = Duration::from_secs(30);

/// A subscription that is to be made.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubscriptionRequest {
    pub(crate) url: String,
    pub(crate) event_types: Vec<String>,
    pub(crate) email: String,
    pub(crate) description: String,
    pub(crate) timeout_millis: u64,
}

/// A subscription that was just made.
#[derive(Deserialize)]
pub(crate) struct Created {
    pub(crate) id: Uuid,
    pub(crate) secret: NewSecret,
}

/// A secret, shown this once. Has no `Debug`, so that it cannot get into a log.
#[derive(Deserialize)]
pub(crate) struct NewSecret {
    pub(crate) secret: String,
}

/// A subscription as `GET /subscriptions/{id}` shows it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subscription {
    pub(crate) id: Uuid,
    pub(crate) description: String,
    pub(crate) state: String,
    pub(crate) state_reason: String,
    pub(crate) verification: Verification,
}

/// How an endpoint was verified, or why it is not.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Verification {
    pub(crate) failed_attempts: u32,
    pub(crate) error: Option<String>,
}

/// An event type of the catalogue.
#[derive(Debug, Deserialize)]
pub(crate) struct EventType {
    pub(crate) name: String,
    /// Data that is acceptable.
    pub(crate) example: Box<RawValue>,
}

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

#[derive(Deserialize)]
struct Identified {
    id: Uuid,
}

/// A caller of the portal.
pub(crate) struct Portal {
    client: Client,
    url: String,
    key: String,
}

impl Portal {
    /// A caller with this key.
    pub(crate) fn new(url: &str, key: &str) -> anyhow::Result<Self> {
        Ok(Self {
            client: web::client(LIMIT)?,
            url: url.trim_end_matches('/').to_owned(),
            key: key.to_owned(),
        })
    }

    /// The catalogue.
    pub(crate) async fn event_types(&self) -> anyhow::Result<Vec<EventType>> {
        let types: List<EventType> = self.read("/event-types").await?;
        Ok(types.items)
    }

    /// The reseller's subscriptions, as far as one answer holds them.
    pub(crate) async fn subscriptions(&self) -> anyhow::Result<Vec<Subscription>> {
        let subscriptions: List<Subscription> = self.read("/subscriptions").await?;
        Ok(subscriptions.items)
    }

    /// A subscription as it is now.
    pub(crate) async fn subscription(&self, id: Uuid) -> anyhow::Result<Subscription> {
        self.read(&format!("/subscriptions/{id}")).await
    }

    /// Makes a subscription.
    pub(crate) async fn subscribe(&self, subscription: &SubscriptionRequest) -> anyhow::Result<Created> {
        self.write("/subscriptions", subscription).await
    }

    /// Ends a subscription.
    pub(crate) async fn unsubscribe(&self, id: Uuid) -> anyhow::Result<()> {
        let path = format!("/subscriptions/{id}");
        self.succeed(self.request(Method::DELETE, &path), &path)
            .await
            .map(drop)
    }

    /// Gives a subscription another secret.
    pub(crate) async fn rotate_secret(&self, id: Uuid) -> anyhow::Result<NewSecret> {
        self.write(&format!("/subscriptions/{id}/secrets"), &json!({}))
            .await
    }

    /// Asks for another daily quota; returns the identifier of the request.
    pub(crate) async fn request_quota(&self, id: Uuid, daily: u32, reason: &str) -> anyhow::Result<Uuid> {
        let path = format!("/subscriptions/{id}/quota-requests");
        let body = json!({ "dailyQuota": daily, "reason": reason });
        let request: Identified = self.write(&path, &body).await?;
        Ok(request.id)
    }

    /// Approves a quota request; an administrator may.
    pub(crate) async fn approve_quota(&self, request: Uuid) -> anyhow::Result<()> {
        let path = format!("/admin/quota-requests/{request}/approve");
        self.write::<Value>(&path, &json!({})).await.map(drop)
    }

    async fn read<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.document(self.request(Method::GET, path), path).await
    }

    async fn write<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> anyhow::Result<T> {
        self.document(self.request(Method::POST, path).json(body), path)
            .await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        request.bearer_auth(&self.key)
    }

    async fn document<T: DeserializeOwned>(&self, request: RequestBuilder, path: &str) -> anyhow::Result<T> {
        let answer = self.succeed(request, path).await?.text().await;
        let document = answer.map(|text| serde_json::from_str(&text));
        document.map_err(reqwest::Error::without_url)?.with_context(|| {
            format!(
                "{}{path} answered with something that no reseller portal says",
                self.url
            )
        })
    }

    async fn succeed(&self, request: RequestBuilder, path: &str) -> anyhow::Result<reqwest::Response> {
        let url = format!("{}{path}", self.url);
        let response = web::send(request, &url).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(Refusal::of(url, response).await.into())
    }
}

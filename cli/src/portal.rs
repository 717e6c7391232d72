//! The reseller portal as its callers see it.

use std::env;
use std::ops::Deref;

use anyhow::{Context as _, bail};
use clap::Args;
use reqwest::StatusCode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::{Api, Page, Service};
use crate::catalogue::{self, Catalogue};
use crate::web;

static SERVICE: Service = Service {
    name: "reseller portal",
    address: "PORTAL_URL or --portal-url",
    advice,
};

/// What is set for those alone who see more than one reseller.
const OF_OPERATORS: [&str; 2] = ["OPERATOR_KEY", "DATABASE_URL"];

/// As many entries of a list as the portal gives at once.
pub(crate) const PAGE_MAX: &str = "200";

/// Where the reseller portal is, and the key for it.
#[derive(Debug, Clone, Args)]
pub(crate) struct PortalArgs {
    /// Where reseller-portal listens.
    #[arg(
        long,
        value_name = "URL",
        env = "PORTAL_URL",
        default_value = "http://127.0.0.1:8081"
    )]
    portal_url: String,
    /// An API key of the reseller.
    #[arg(long, value_name = "KEY", env = "RESELLER_KEY", hide_env_values = true)]
    reseller_key: Option<String>,
}

impl PortalArgs {
    fn key(&self) -> Option<&str> {
        self.reseller_key.as_deref().filter(|key| !key.is_empty())
    }

    /// Whether the portal can be asked at all.
    pub(crate) fn has_key(&self) -> bool {
        self.key().is_some()
    }
}

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
struct Identified {
    id: Uuid,
}

/// A caller of the portal.
pub(crate) struct Portal(Api);

impl Deref for Portal {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.0
    }
}

impl Portal {
    /// A caller with this key.
    pub(crate) fn new(url: &str, key: &str) -> anyhow::Result<Self> {
        Ok(Self(Api::new(&SERVICE, url, key)?))
    }

    /// A caller with the address and the key of the command line.
    pub(crate) fn connect(args: &PortalArgs) -> anyhow::Result<Self> {
        let Some(key) = args.key() else {
            bail!(
                "no API key of a reseller is given; set the one that you got from the operators of Postrider as RESELLER_KEY or with \
                 --reseller-key (they make it with `postrider keys create --name acme --role reseller --reseller acme`). Operators see \
                 attempts, story and subscription of a notification with `postrider explain ID`"
            );
        };
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            bail!(
                "the API key of --reseller-key or RESELLER_KEY holds characters that none has, such as blanks; copy it again"
            );
        }
        Self::new(web::address("--portal-url or PORTAL_URL", &args.portal_url)?, key)
    }

    /// The first entry of a list, which is the newest.
    pub(crate) async fn newest<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Option<T>> {
        let page: Page<T> = self.get(path, &[("limit", "1")]).await?;
        Ok(page.items.into_iter().next())
    }

    /// A list from its newest entry back to `since`.
    pub(crate) async fn all_since<T: DeserializeOwned>(
        &self,
        path: &str,
        since: Option<&str>,
    ) -> anyhow::Result<Vec<T>> {
        let (mut rows, mut cursor) = (Vec::new(), None);
        loop {
            let query = [
                ("limit", Some(PAGE_MAX)),
                ("since", since),
                ("cursor", cursor.as_deref()),
            ];
            let page: Page<T> = self.get(path, &query).await?;
            rows.extend(page.items);
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(rows),
            }
        }
    }

    /// The catalogue with everything that is said of it, without types that are retired.
    pub(crate) async fn catalogue(&self) -> anyhow::Result<Catalogue> {
        let mut types: Page<Value> = self.get("/event-types", &()).await?;
        types.items.retain(|event_type| event_type["retiredAt"].is_null());
        let read = |event_type| serde_json::from_value::<catalogue::EventType>(event_type);
        let types = types.items.into_iter().map(read).collect::<Result<_, _>>();
        let types = types.context("the portal's catalogue has an event type of another form")?;
        Ok(Catalogue { types })
    }

    /// The catalogue.
    pub(crate) async fn event_types(&self) -> anyhow::Result<Vec<EventType>> {
        let types: Page<EventType> = self.get("/event-types", &()).await?;
        Ok(types.items)
    }

    /// The reseller's subscriptions, as far as one answer holds them.
    pub(crate) async fn subscriptions(&self) -> anyhow::Result<Vec<Subscription>> {
        let subscriptions: Page<Subscription> = self.get("/subscriptions", &()).await?;
        Ok(subscriptions.items)
    }

    /// A subscription as it is now.
    pub(crate) async fn subscription(&self, id: Uuid) -> anyhow::Result<Subscription> {
        self.get(&format!("/subscriptions/{id}"), &()).await
    }

    /// Makes a subscription.
    pub(crate) async fn subscribe(&self, subscription: &SubscriptionRequest) -> anyhow::Result<Created> {
        self.post("/subscriptions", subscription).await
    }

    /// Ends a subscription.
    pub(crate) async fn unsubscribe(&self, id: Uuid) -> anyhow::Result<()> {
        self.delete(&format!("/subscriptions/{id}")).await
    }

    /// Gives a subscription another secret.
    pub(crate) async fn rotate_secret(&self, id: Uuid) -> anyhow::Result<NewSecret> {
        self.post(&format!("/subscriptions/{id}/secrets"), &json!({}))
            .await
    }

    /// Asks for another daily quota; returns the identifier of the request.
    pub(crate) async fn request_quota(&self, id: Uuid, daily: u32, reason: &str) -> anyhow::Result<Uuid> {
        let path = format!("/subscriptions/{id}/quota-requests");
        let body = json!({ "dailyQuota": daily, "reason": reason });
        let request: Identified = self.post(&path, &body).await?;
        Ok(request.id)
    }
}

/// Where what is unknown may be found. Resellers are not told of what they cannot ask.
fn elsewhere(is_operator: bool) -> &'static str {
    if is_operator {
        "what this reseller, whose key is RESELLER_KEY, has is shown by `postrider subscriptions list`, `notifications list` (those of an \
         event with `--event-id`), `secrets list` and `replays list`. Operators see what all have with `postrider find ID` and \
         `postrider explain ID`, and with RESELLER_KEY unset"
    } else {
        "what this reseller, whose key is RESELLER_KEY, has is shown by `postrider subscriptions list`, `notifications list` (those of an \
         event with `--event-id`), `secrets list` and `replays list`"
    }
}

/// What mends a refusal that is not about what was asked for.
fn advice(status: StatusCode) -> Option<&'static str> {
    match status {
        StatusCode::UNAUTHORIZED => Some(
            "the API key is not accepted; check RESELLER_KEY or --reseller-key, and PORTAL_URL: each installation has its own",
        ),
        StatusCode::FORBIDDEN => Some(
            "the API key is of another role; this needs one of the role reseller, and what only looks takes reseller-viewer as well",
        ),
        StatusCode::NOT_FOUND => {
            let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
            Some(elsewhere(OF_OPERATORS.into_iter().any(is_set)))
        }
        StatusCode::TOO_MANY_REQUESTS => Some("the portal wants a pause; try again in some seconds"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resellers_are_not_told_of_what_operators_alone_can_ask() {
        for is_operator in [false, true] {
            let said = elsewhere(is_operator);
            assert!(said.contains("`postrider subscriptions list`"), "{said}");
            assert_eq!(said.contains("postrider explain"), is_operator, "{said}");
        }
    }
}

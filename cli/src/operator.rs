//! The operator API as its callers see it.
//!
//! It deliberately knows no document of the API: each command reads what it shows.

use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::problem::Refusal;
use crate::web;

/// Longer than the service takes for its own "not now".
const LIMIT: Duration = Duration::from_secs(30);

/// Where the operator API is, and the key for it.
#[derive(Debug, Clone, Args)]
pub(crate) struct OperatorArgs {
    /// Where operator-api listens.
    #[arg(long, env = "OPERATOR_URL", default_value = "http://127.0.0.1:8082")]
    url: String,
    /// An API key of the role operator, or viewer for commands that only look; from `postrider keys create`.
    #[arg(long, env = "OPERATOR_KEY", hide_env_values = true)]
    key: Option<String>,
}

/// A part of a list.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// The `cursor` with which the list goes on.
    pub(crate) next: Option<String>,
}

/// A caller of the operator API.
pub(crate) struct Operator {
    client: Client,
    url: String,
    key: String,
}

impl Operator {
    /// A caller with the given address and key.
    pub(crate) fn new(args: &OperatorArgs) -> anyhow::Result<Self> {
        let Some(key) = args.key.clone().filter(|key| !key.is_empty()) else {
            bail!(
                "no API key is given; make one with `postrider keys create --name me --role operator` and set it as \
                 OPERATOR_KEY or with --key"
            );
        };
        Self::connect(&args.url, &key)
    }

    /// A caller with this address and key.
    pub(crate) fn connect(url: &str, key: &str) -> anyhow::Result<Self> {
        Ok(Self {
            client: web::client(LIMIT)?,
            url: url.trim_end_matches('/').to_owned(),
            key: key.to_owned(),
        })
    }

    /// What is at `path`. `query` is whatever becomes a query string: pairs, or a struct whose empty options are left out.
    /// With `T` = [`serde_json::Value`] it is the document just as the API gives it.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &(impl Serialize + ?Sized),
    ) -> anyhow::Result<T> {
        let request = self.client.get(format!("{}{path}", self.url)).query(query);
        self.document(request, path).await
    }

    /// What `POST path` answers.
    pub(crate) async fn act<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        let request = self.client.post(format!("{}{path}", self.url)).json(body);
        self.document(request, path).await
    }

    async fn document<T: DeserializeOwned>(&self, request: RequestBuilder, path: &str) -> anyhow::Result<T> {
        let url = format!("{}{path}", self.url);
        let response = web::send(request.bearer_auth(&self.key), &url).await?;
        if !response.status().is_success() {
            let refusal = Refusal::of(url, response).await;
            return Err(match advice(refusal.status) {
                Some(advice) => anyhow::Error::new(refusal).context(advice),
                None => anyhow::Error::new(refusal),
            });
        }
        let text = response.text().await.map_err(reqwest::Error::without_url)?;
        serde_json::from_str(&text)
            .with_context(|| format!("{url} answered with something that no operator API says"))
    }
}

/// What mends a refusal that is about the key and not about what was asked for.
fn advice(status: StatusCode) -> Option<&'static str> {
    match status {
        StatusCode::UNAUTHORIZED => Some("the API key is not accepted; check OPERATOR_KEY or --key"),
        StatusCode::FORBIDDEN => Some(
            "the API key is of another role; looking needs viewer, operator or admin, and acting needs operator or admin",
        ),
        _ => None,
    }
}

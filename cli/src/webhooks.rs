//! The endpoints of a receiver of webhooks at which it is asked and told, as its users see them.

use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::{Client, RequestBuilder, Response};
use serde::Serialize;
use simulators::receiver::{Received, ReceivedPage, Rule};

use crate::web;

const LIMIT: Duration = Duration::from_secs(10);
/// Requests asked for at once.
const PAGE: usize = 5_000;

/// A receiver that runs.
pub(crate) struct Webhooks {
    client: Client,
    url: String,
}

/// A secret for the endpoint at one path.
#[derive(Clone, Serialize)]
pub(crate) struct SecretAt {
    pub(crate) path: String,
    pub(crate) secret: String,
}

#[derive(Serialize)]
struct Order<'a> {
    rules: &'a [Rule],
    secrets: &'a [SecretAt],
}

impl Webhooks {
    /// The receiver at `url`.
    pub(crate) fn new(url: &str) -> anyhow::Result<Self> {
        Ok(Self {
            client: web::client(LIMIT)?,
            url: url.trim_end_matches('/').to_owned(),
        })
    }

    /// The address of an endpoint.
    pub(crate) fn endpoint(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Replaces what it knows and how it behaves.
    pub(crate) async fn control(&self, rules: &[Rule], secrets: &[SecretAt]) -> anyhow::Result<()> {
        let url = format!("{}/_control", self.url);
        let order = Order { rules, secrets };
        succeed(self.client.put(&url).json(&order), &url).await.map(drop)
    }

    /// The requests that it still remembers.
    pub(crate) async fn received(&self) -> anyhow::Result<Vec<Received>> {
        let (mut after, mut all) = (0, Vec::new());
        loop {
            let url = format!("{}/_received?after={after}&limit={PAGE}", self.url);
            let answer = succeed(self.client.get(&url), &url).await?.json().await;
            let page: ReceivedPage =
                answer.with_context(|| format!("{url} answered with something that no receiver says"))?;
            if page.items.is_empty() {
                return Ok(all);
            }
            after = page.next_after;
            all.extend(page.items);
        }
    }
}

async fn succeed(request: RequestBuilder, url: &str) -> anyhow::Result<Response> {
    let response = web::send(request, url).await?;
    let status = response.status();
    if !status.is_success() {
        let reason = response.text().await.unwrap_or_default();
        bail!("{url} answered {status}: {reason}; is that `postrider receive`?");
    }
    Ok(response)
}

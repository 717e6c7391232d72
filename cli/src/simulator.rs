//! The Swrve simulator's own endpoints, as its users see them.

use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::{Client, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use simulators::swrve::{Received, ReceivedPage, Report, Rule};

use crate::web;

const LIMIT: Duration = Duration::from_secs(10);
/// Requests asked for at once.
const PAGE: usize = 10_000;

/// A simulator that runs.
pub(crate) struct Simulator {
    client: Client,
    url: String,
}

impl Simulator {
    /// The simulator at `url`.
    pub(crate) fn new(url: &str) -> anyhow::Result<Self> {
        Ok(Self {
            client: web::client(LIMIT)?,
            url: url.trim_end_matches('/').to_owned(),
        })
    }

    /// What has arrived.
    pub(crate) async fn report(&self) -> anyhow::Result<Report> {
        let url = format!("{}/report", self.url);
        read(self.client.get(&url), &url).await
    }

    /// Forgets what has arrived.
    pub(crate) async fn reset(&self) -> anyhow::Result<()> {
        let url = format!("{}/report", self.url);
        succeed(self.client.delete(&url), &url).await.map(drop)
    }

    /// Replaces the rules by which it fails.
    pub(crate) async fn script(&self, rules: &[Rule]) -> anyhow::Result<()> {
        let url = format!("{}/script", self.url);
        succeed(self.client.put(&url).json(rules), &url).await.map(drop)
    }

    /// The requests that it still remembers.
    pub(crate) async fn received(&self) -> anyhow::Result<Vec<Received>> {
        let (mut after, mut all) = (0, Vec::new());
        loop {
            let url = format!("{}/received?after={after}&limit={PAGE}", self.url);
            let page: ReceivedPage = read(self.client.get(&url), &url).await?;
            if page.items.is_empty() {
                return Ok(all);
            }
            after = page.next_after;
            all.extend(page.items);
        }
    }
}

async fn read<T: DeserializeOwned>(request: RequestBuilder, url: &str) -> anyhow::Result<T> {
    let answer = succeed(request, url).await?.json().await;
    answer.with_context(|| format!("{url} answered with something that no Swrve simulator says"))
}

async fn succeed(request: RequestBuilder, url: &str) -> anyhow::Result<Response> {
    let response = web::send(request, url).await?;
    let status = response.status();
    if !status.is_success() {
        bail!("{url} answered {status}; is that a Swrve simulator?");
    }
    Ok(response)
}

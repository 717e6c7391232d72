//! The HTTP client of the commands that talk to running services.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::{Client, RequestBuilder, Response};

/// A client whose requests take no longer than `limit`.
pub(crate) fn client(limit: Duration) -> anyhow::Result<Client> {
    Client::builder()
        .timeout(limit)
        // It talks to Postrider itself, mostly on this machine, where a proxy for the outside would only be in the way.
        .no_proxy()
        .build()
        .context("failed to build an HTTP client")
}

/// Sends a request to `url`, which names it in the error.
pub(crate) async fn send(request: RequestBuilder, url: &str) -> anyhow::Result<Response> {
    request
        .send()
        .await
        .map_err(reqwest::Error::without_url)
        .with_context(|| format!("failed to reach {url} (is it running?)"))
}

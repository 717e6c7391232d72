//! Hands a notification on, byte for byte, and brings back what is answered.

use std::time::Duration;

use anyhow::bail;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use reqwest::{Client, Url};

use crate::web;

/// As long as an endpoint may take at most.
const LIMIT: Duration = Duration::from_secs(30);
/// Headers that belong to one connection, or that the client writes itself.
const OWN: [HeaderName; 7] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::UPGRADE,
    header::EXPECT,
];

/// Where notifications are handed on to.
#[derive(Debug)]
pub(super) struct Forward {
    client: Client,
    pub(super) url: Url,
}

/// What was answered there.
#[derive(Debug)]
pub(super) struct Forwarded {
    pub(super) status: StatusCode,
    pub(super) content_type: Option<HeaderValue>,
    pub(super) body: Bytes,
}

impl Forward {
    pub(super) fn new(url: Url) -> anyhow::Result<Self> {
        if !matches!(url.scheme(), "http" | "https") {
            bail!("--forward-to {url} is no HTTP URL; write one such as http://127.0.0.1:8000/hooks");
        }
        let client = web::endpoint_client(LIMIT)?;
        Ok(Self { client, url })
    }

    /// The answer, or why there is none.
    pub(super) async fn send(&self, headers: &HeaderMap, body: Bytes) -> anyhow::Result<Forwarded> {
        let mut headers = headers.clone();
        for name in &OWN {
            headers.remove(name);
        }
        let request = self.client.post(self.url.clone()).headers(headers).body(body);
        let response = web::send(request, self.url.as_str()).await?;
        Ok(Forwarded {
            status: response.status(),
            content_type: response.headers().get(header::CONTENT_TYPE).cloned(),
            body: response.bytes().await.map_err(reqwest::Error::without_url)?,
        })
    }
}

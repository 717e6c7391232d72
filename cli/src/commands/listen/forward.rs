//! Hands a notification on, byte for byte, and brings back what is answered.

use std::time::Duration;

use anyhow::bail;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
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
    /// But for those of the connection. `Retry-After` and `Location` are as much of an answer as the status is.
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl IntoResponse for Forwarded {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body).into_response();
        *response.headers_mut() = self.headers;
        response
    }
}

impl Forward {
    pub(super) fn new(url: Url) -> anyhow::Result<Self> {
        if !matches!(url.scheme(), "http" | "https") {
            bail!("--forward-to {url} is no HTTP URL; write one such as http://127.0.0.1:8000/hooks");
        }
        let client = web::client(LIMIT)?;
        Ok(Self { client, url })
    }

    /// The answer, or why there is none.
    pub(super) async fn send(&self, headers: &HeaderMap, body: Bytes) -> anyhow::Result<Forwarded> {
        let headers = passed_on(headers);
        let request = self.client.post(self.url.clone()).headers(headers).body(body);
        let response = web::send(request, self.url.as_str()).await?;
        Ok(Forwarded {
            status: response.status(),
            headers: passed_on(response.headers()),
            body: response.bytes().await.map_err(reqwest::Error::without_url)?,
        })
    }
}

fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in &OWN {
        headers.remove(name);
    }
    headers
}

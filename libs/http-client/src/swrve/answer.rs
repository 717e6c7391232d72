//! Reads Swrve's answer into an outcome. The status alone decides whether a push was delivered; the body only says why
//! it was not, so it may cost neither much memory nor much time.

use std::time::Duration;

use domain::push::{SendOutcome, StatusClass, classify};
use hyper::ext::ReasonPhrase;
use reqwest::Response;
use serde::Deserialize;
use tokio::time::Instant;

use crate::sanitise::sanitise;

/// Swrve's own bodies are some dozen bytes long.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// How long a body may take once the headers are there; the deadline of the send still holds.
const MAX_BODY_TIME: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct SwrveBody {
    code: Option<i64>,
    message: Option<String>,
}

/// The outcome that `response` stands for. A body that is too long, too slow, broken off or no JSON counts as absent.
pub(crate) async fn outcome_of(response: Response, deadline: Instant) -> SendOutcome {
    let status = response.status();
    let reason = reason_of(&response);
    let body_deadline = deadline.min(Instant::now() + MAX_BODY_TIME);
    // Read for a 2xx as well: a connection whose answer was left unread cannot be used again.
    let body = tokio::time::timeout_at(body_deadline, read_body(response))
        .await
        .ok()
        .flatten();
    if classify(status.as_u16()) == StatusClass::Success {
        return SendOutcome::Delivered;
    }
    // A list would be read as the members in the order of their declaration.
    let object = body.filter(|bytes| bytes.trim_ascii_start().starts_with(b"{"));
    let said = object.and_then(|bytes| serde_json::from_slice::<SwrveBody>(&bytes).ok());
    let (code, message) = said.map_or((None, None), |body| (body.code, body.message));
    let message = message
        .filter(|text| !text.trim().is_empty())
        .unwrap_or_else(|| format!("{} {reason}", status.as_u16()));
    SendOutcome::Refused {
        status: status.as_u16(),
        code,
        message: sanitise(message.trim()),
    }
}

/// The body by chunks; `None` as soon as it is too long or cannot be read.
async fn read_body(mut response: Response) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if body.len() + chunk.len() > MAX_BODY_BYTES {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    Some(body)
}

/// The reason phrase as sent; HTTP libraries keep it only when it is not the usual one of the status.
fn reason_of(response: &Response) -> String {
    match response.extensions().get::<ReasonPhrase>() {
        Some(phrase) => String::from_utf8_lossy(phrase.as_bytes()).into_owned(),
        None => response
            .status()
            .canonical_reason()
            .unwrap_or_default()
            .to_owned(),
    }
}

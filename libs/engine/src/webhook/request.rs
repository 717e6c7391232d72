//! The request of an attempt: the same body, id and key every time, signed again with the time of the attempt.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::notification::{DeliveryOutcome, FailureKind};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_client::{Endpoint, WebhookRequest};
use signing::Secret;

use super::endpoints::Target;

const WEBHOOK_ID: HeaderName = HeaderName::from_static(signing::HEADER_ID);
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static(signing::HEADER_TIMESTAMP);
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static(signing::HEADER_SIGNATURE);
const EVENT_ID: HeaderName = HeaderName::from_static("event-id");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What is sent.
pub(crate) struct Content<'a> {
    /// What the receiver knows the event by.
    pub(crate) id: &'a str,
    pub(crate) body: Bytes,
    pub(crate) traceparent: Option<String>,
}

/// The signed request.
pub(crate) fn signed(
    content: Content<'_>,
    target: &Target,
    at: DateTime<Utc>,
) -> Result<WebhookRequest, DeliveryOutcome> {
    let endpoint = target
        .endpoint
        .clone()
        .map_err(|message| DeliveryOutcome::Failed {
            kind: FailureKind::Egress,
            message,
        })?;
    let secrets = target.secrets(at).map_err(ours)?;
    signed_with(content, endpoint, &secrets, (target.timeout, at))
}

/// The request to an endpoint, signed with these secrets.
pub(crate) fn signed_with(
    content: Content<'_>,
    endpoint: Endpoint,
    secrets: &[&Secret],
    (timeout, at): (Duration, DateTime<Utc>),
) -> Result<WebhookRequest, DeliveryOutcome> {
    let signature = signing::signature_header(secrets, content.id, at.timestamp(), &content.body);
    let id = HeaderValue::from_str(content.id)
        .map_err(|_| ours("the event's id cannot be a header".to_owned()))?;
    let text = |text: &str| {
        HeaderValue::from_str(text).expect("invariant: digits, base64 and hex are visible ASCII")
    };
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(WEBHOOK_ID, id.clone());
    headers.insert(WEBHOOK_TIMESTAMP, at.timestamp().into());
    headers.insert(WEBHOOK_SIGNATURE, text(&signature));
    headers.insert(EVENT_ID, id);
    headers.insert(IDEMPOTENCY_KEY, text(&signing::idempotency_key(&content.body)));
    // A trace is not worth a notification.
    if let Some(traceparent) = content
        .traceparent
        .and_then(|text| HeaderValue::try_from(text).ok())
    {
        headers.insert(TRACEPARENT, traceparent);
    }
    Ok(WebhookRequest {
        endpoint,
        headers,
        body: content.body,
        timeout,
    })
}

/// A failure that is none of the endpoint's.
pub(crate) fn ours(message: String) -> DeliveryOutcome {
    DeliveryOutcome::Failed {
        kind: FailureKind::Other,
        message,
    }
}

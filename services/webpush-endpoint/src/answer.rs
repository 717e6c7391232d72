//! Refusals as senders see them: `{code, errno, error, message, more_info}`.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use telemetry::Metric;
use webpush::{Refusal, VapidError};

/// Where the numbers are explained.
const MORE_INFO: &str = "http://autopush.readthedocs.io/en/latest/http.html#error-codes";
/// For how long a sender may keep in mind that a subscription is gone.
const GONE: HeaderValue = HeaderValue::from_static("max-age=86400");
/// When to try again what could not be stored.
const RETRY: HeaderValue = HeaderValue::from_static("120");
/// The same of what came too fast.
const SLOWER: HeaderValue = HeaderValue::from_static("1");
/// How a sender shows who it is.
const CHALLENGE: HeaderValue = HeaderValue::from_static("vapid");

/// A refusal, to be answered.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) Refusal);

impl<R: Into<Refusal>> From<R> for Refused {
    fn from(refusal: R) -> Self {
        Self(refusal.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(refusal) = self;
        Metric::WebpushRefused.increment_with(&[("reason", refusal.reason())], 1);
        let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let document = json!({
            "code": status.as_u16(),
            "errno": refusal.errno(),
            "error": status.canonical_reason(),
            "message": refusal.to_string(),
            "more_info": MORE_INFO,
        });
        let mut response = (status, Json(document)).into_response();
        if let Some((name, value)) = own_header(&refusal) {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

fn own_header(refusal: &Refusal) -> Option<(header::HeaderName, HeaderValue)> {
    match refusal {
        Refusal::Vapid(VapidError::KeyMismatch) => None,
        Refusal::Vapid(_) => Some((header::WWW_AUTHENTICATE, CHALLENGE)),
        Refusal::TooMany => Some((header::RETRY_AFTER, SLOWER)),
        refusal => match refusal.status() {
            410 => Some((header::CACHE_CONTROL, GONE)),
            503 => Some((header::RETRY_AFTER, RETRY)),
            _ => None,
        },
    }
}

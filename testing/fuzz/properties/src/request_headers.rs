//! The headers that every API reads: `Idempotency-Key`, `Authorization`, `Content-Type`, `traceparent`. What is taken
//! has the documented form, and what one part takes for a trace the others do as well.

use std::str;

use broker::Envelope;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

use crate::given::{is_explained, now};

/// Checks the property. The first byte chooses the header, a line end separates values.
pub fn check(input: &[u8]) {
    let Some((choice, text)) = input.split_first() else {
        return;
    };
    let values: Vec<_> = text
        .split(|byte| *byte == b'\n')
        .filter_map(|value| HeaderValue::from_bytes(value).ok())
        .take(3)
        .collect();
    let headers = |name: HeaderName| -> HeaderMap {
        values.iter().map(|value| (name.clone(), value.clone())).collect()
    };
    match choice % 4 {
        0 => idempotency_key(&headers(http_api::IDEMPOTENCY_KEY), &values),
        1 => api_key(&headers(AUTHORIZATION), values.first()),
        2 => content_type(&headers(CONTENT_TYPE), values.first()),
        _ => traceparent(&headers(HeaderName::from_static("traceparent")), values.first()),
    }
}

fn idempotency_key(headers: &HeaderMap, values: &[HeaderValue]) {
    let visible = |value: &HeaderValue| {
        (1..=255).contains(&value.len()) && value.as_bytes().iter().all(|byte| (b'!'..=b'~').contains(byte))
    };
    match http_api::idempotency_key(headers) {
        Ok(None) => assert!(values.is_empty()),
        Ok(Some(key)) => assert!(matches!(values, [only] if visible(only) && only == key)),
        Err(problem) => {
            is_explained(&problem);
            assert!(!matches!(values, [only] if visible(only)));
        }
    }
}

fn api_key(headers: &HeaderMap, value: Option<&HeaderValue>) {
    match http_api::fuzzing::api_key(headers) {
        Ok(key) => {
            let digits = key.strip_prefix("pr_").expect("a key begins with pr_");
            assert!(digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let text = value
                .and_then(|value| value.to_str().ok())
                .expect("it came from there");
            assert!(text.len() >= "Bearer ".len() + key.len() && text.trim_end().ends_with(key));
            assert!(text[..6].eq_ignore_ascii_case("bearer"));
        }
        Err(problem) => {
            is_explained(&problem);
            let shown = problem.example().to_string();
            let given = value.and_then(|value| value.to_str().ok()).unwrap_or_default();
            let tail = given.split_once("pr_").map_or("", |(_, tail)| tail);
            let digits = tail.bytes().filter(u8::is_ascii_digit).count();
            assert!(digits < 4 || !shown.contains(tail), "it may be a key with a slip");
        }
    }
}

fn content_type(headers: &HeaderMap, value: Option<&HeaderValue>) {
    let text = value
        .and_then(|value| value.to_str().ok())
        .map(str::to_ascii_lowercase);
    let essence = text
        .as_deref()
        .and_then(|text| text.split(';').next())
        .map(str::trim);
    let is_json = essence.is_some_and(|essence| {
        matches!(essence, "application/json" | "text/json")
            || essence
                .strip_prefix("application/")
                .and_then(|subtype| subtype.strip_suffix("+json"))
                .is_some_and(|name| !name.is_empty())
    });
    assert_eq!(http_api::require_json(headers).is_ok(), is_json, "{value:?}");
}

/// What ingest stores, the broker passes on: a trace that is taken at the door is not lost behind it.
fn traceparent(headers: &HeaderMap, value: Option<&HeaderValue>) {
    let taken = http_api::traceparent(headers, false);
    let text = value.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let envelope = Envelope::push(Uuid::from_u128(1), now(), Some(text.to_owned()));
    assert_eq!(taken, envelope.traceparent, "{text:?}");
    if let Some(trace) = taken {
        assert!(
            (55..=128).contains(&trace.len())
                && trace.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        );
        let flags = u8::from_str_radix(&trace[53..55], 16).expect("hexadecimal");
        assert_eq!(telemetry::traceparent::is_sampled(&trace), flags & 1 == 1);
    }
}

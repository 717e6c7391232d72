//! Reading a request's body: declared as JSON, no longer than allowed, there in time.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, EXPECT};
use http::{HeaderMap, HeaderValue};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::time::{Instant, timeout_at};

use crate::kind::ProblemKind;
use crate::problem::Problem;

/// How much of a body that is too long is read and thrown away. A caller that is still sending when the connection
/// closes often never sees the answer.
const DISCARDED: usize = 4 * 1024 * 1024;

/// Whether the body is declared as JSON: `application/json`, `text/json` or `application/…+json`, with any parameters.
pub fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(declared) = headers.get(CONTENT_TYPE) else {
        return Err(unsupported("the Content-Type header is missing"));
    };
    if declared.to_str().is_ok_and(is_json) {
        return Ok(());
    }
    Err(unsupported(
        "the Content-Type must be application/json, text/json or application/*+json",
    ))
}

fn unsupported(detail: &'static str) -> Problem {
    Problem::new(ProblemKind::UNSUPPORTED_MEDIA_TYPE, detail)
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let Some((kind, subtype)) = essence.split_once('/') else {
        return false;
    };
    let application = kind.eq_ignore_ascii_case("application");
    if subtype.eq_ignore_ascii_case("json") {
        return application || kind.eq_ignore_ascii_case("text");
    }
    // Compared as bytes: a header may hold any characters at the border of the suffix.
    application
        && subtype
            .as_bytes()
            .split_last_chunk::<5>()
            .is_some_and(|(name, suffix)| !name.is_empty() && suffix.eq_ignore_ascii_case(b"+json"))
}

/// The whole body, however it is framed.
///
/// # Errors
///
/// The problem to answer with: too long, too late, or broken off.
pub async fn read(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    deadline: Instant,
) -> Result<Bytes, Problem> {
    let declared = body.size_hint().lower();
    let waits_for_go = headers.get(EXPECT).is_some_and(asks_first);
    if declared > limit as u64 && (waits_for_go || declared > DISCARDED as u64) {
        return Err(too_large(limit));
    }
    match timeout_at(deadline, collect(body, limit)).await {
        Ok(collected) => collected,
        Err(_) => Err(Problem::new(
            ProblemKind::REQUEST_TIMEOUT,
            "the body did not arrive in time",
        )),
    }
}

fn asks_first(expect: &HeaderValue) -> bool {
    expect.as_bytes().eq_ignore_ascii_case(b"100-continue")
}

async fn collect(mut body: Body, limit: usize) -> Result<Bytes, Problem> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut length = 0_usize;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(Problem::new(ProblemKind::MALFORMED_BODY, "the body broke off"));
        };
        let Ok(data) = frame.into_data() else { continue };
        length = length.saturating_add(data.len());
        if length > limit {
            discard(body, length).await;
            return Err(too_large(limit));
        }
        // Nearly every body comes in one piece, which is then not copied.
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(length);
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(whole.freeze())
}

async fn discard(mut body: Body, mut length: usize) {
    while length <= DISCARDED {
        match body.frame().await {
            Some(Ok(frame)) => length = length.saturating_add(frame.data_ref().map_or(0, Bytes::len)),
            Some(Err(_)) | None => return,
        }
    }
}

fn too_large(limit: usize) -> Problem {
    Problem::new(
        ProblemKind::BODY_TOO_LARGE,
        format!("the body is longer than {limit} bytes"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_json_content_type_is_accepted() {
        for declared in [
            "application/json",
            "APPLICATION/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=utf-8;profile=x",
            "text/json",
            "application/vnd.example.push+json",
            "application/vnd.example.push+JSON ; v=1",
        ] {
            assert!(is_json(declared), "{declared}");
        }
    }

    #[test]
    fn other_content_types_are_not() {
        for declared in [
            "",
            "json",
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonp",
            "application/+json",
            "text/x+json",
            "application/ä+json+",
            "application/xml; a=application/json",
        ] {
            assert!(!is_json(declared), "{declared}");
        }
    }
}

//! What is sent, and how an answer is read.

use std::time::Duration;

use bytes::Bytes;
use chrono::{TimeZone, Utc};
use domain::notification::{DeliveryOutcome, RetryAfter};
use http::{HeaderMap, HeaderValue};
use http_client::Endpoint;

use super::{KEPT, client, reply_of, request, send, status, url_of};
use crate::receiver::{Conduct, Receiver, answer};
use crate::swrve::LONG;

/// The body of the outcome of an answer.
fn body(outcome: DeliveryOutcome) -> String {
    match outcome {
        DeliveryOutcome::Answered { body, .. } => body,
        failed @ DeliveryOutcome::Failed { .. } => panic!("expected an answer, got {failed:?}"),
    }
}

#[tokio::test]
async fn the_request_is_a_post_of_exactly_the_given_bytes() {
    let receiver = Receiver::start(Conduct::Answer(answer("200 OK", ""))).await;
    let content = "{ \"id\" : \"1\",\n\"data\":\"Olá\" }";
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", HeaderValue::from_static("evt_1"));
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    let mut request = request(&format!("http://{}/a%20b?c=d", receiver.addr), LONG);
    request.headers = headers;
    request.body = Bytes::from_static(content.as_bytes());
    assert_eq!(status(&client().send(request).await.outcome), 200);

    let request = receiver.requests().remove(0);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, content);
    assert!(head.starts_with("POST /a%20b?c=d HTTP/1.1\r\n"), "{head}");
    let host = format!("host: {}", receiver.addr);
    let length = format!("content-length: {}", content.len());
    let agent = format!("user-agent: postrider/{}", env!("CARGO_PKG_VERSION"));
    for line in [
        host.as_str(),
        &length,
        &agent,
        "webhook-id: evt_1",
        "content-type: application/json",
    ] {
        assert!(
            head.split("\r\n").any(|header| header == line),
            "{line} is missing: {head}"
        );
    }
    for absent in ["accept-encoding", "transfer-encoding", "referer"] {
        assert!(!head.contains(absent), "{head}");
    }
}

#[tokio::test]
async fn status_body_and_retry_after_are_kept() {
    for (line, status) in [
        ("200 OK", 200),
        ("204 No Content", 204),
        ("410 Gone", 410),
        ("599 Odd", 599),
    ] {
        let body = if status == 204 { "" } else { "because" };
        assert_eq!(
            reply_of(Conduct::Answer(answer(line, body)), LONG).await.outcome,
            DeliveryOutcome::Answered {
                status,
                retry_after: None,
                body: body.to_owned()
            }
        );
    }
    let at = Utc.with_ymd_and_hms(2031, 1, 2, 3, 4, 5).unwrap();
    for (value, wanted) in [
        ("120", Some(RetryAfter::Delay(Duration::from_secs(120)))),
        ("Thu, 02 Jan 2031 03:04:05 GMT", Some(RetryAfter::At(at))),
        ("later", None),
    ] {
        let bytes = answer(&format!("429 Too Many Requests\r\nRetry-After: {value}"), "slow");
        let wanted = DeliveryOutcome::Answered {
            status: 429,
            retry_after: wanted,
            body: "slow".to_owned(),
        };
        assert_eq!(reply_of(Conduct::Answer(bytes), LONG).await.outcome, wanted);
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_not_followed() {
    let elsewhere = Receiver::start(Conduct::Answer(answer("200 OK", ""))).await;
    for (code, reason) in [
        (300, "Multiple Choices"),
        (301, "Moved Permanently"),
        (302, "Found"),
        (303, "See Other"),
        (307, "Temporary Redirect"),
        (308, "Permanent Redirect"),
    ] {
        let line = format!("{code} {reason}\r\nLocation: http://{}/", elsewhere.addr);
        let reply = reply_of(Conduct::Answer(answer(&line, "")), LONG).await;
        assert_eq!(status(&reply.outcome), code);
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn connections_are_used_again_even_after_a_page() {
    // Longer than what is kept, and short enough to be read to its end.
    let page = "x".repeat(KEPT * 4);
    for content in ["", "ok", &page] {
        let receiver = Receiver::start(Conduct::Answer(answer("500 Internal Server Error", content))).await;
        let client = client();
        for _ in 0..5 {
            let reply = send(&client, &url_of(receiver.addr)).await;
            assert_eq!(body(reply.outcome), content[..content.len().min(KEPT)]);
        }
        assert_eq!((receiver.requests().len(), receiver.connections()), (5, 1));
    }
}

#[tokio::test]
async fn a_body_is_made_storable() {
    let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n".to_vec();
    bytes.extend(*b"a\0b\xff\xc3\xa9");
    let reply = reply_of(Conduct::Answer(bytes), LONG).await;
    assert_eq!(body(reply.outcome), "a\u{fffd}b\u{fffd}é");
}

#[tokio::test]
async fn a_compressed_body_is_not_unpacked() {
    let bytes = answer("200 OK\r\nContent-Encoding: gzip", "not gzip at all");
    assert_eq!(
        body(reply_of(Conduct::Answer(bytes), LONG).await.outcome),
        "not gzip at all"
    );
}

#[tokio::test]
async fn a_body_that_breaks_off_leaves_the_status_valid() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec();
    let reply = reply_of(Conduct::AnswerAndClose(bytes), LONG).await;
    assert_eq!(status(&reply.outcome), 200);
    assert_eq!(body(reply.outcome), "half");
}

#[tokio::test]
async fn an_endpoint_is_shared_and_not_copied() {
    let receiver = Receiver::start(Conduct::Answer(answer("200 OK", ""))).await;
    let endpoint = Endpoint::parse(&url_of(receiver.addr)).unwrap();
    assert_eq!(endpoint.clone().as_str().as_ptr(), endpoint.as_str().as_ptr());
    assert_eq!(endpoint.host(), super::HERE);
}

//! What is sent, and how each kind of answer is read.

use std::net::SocketAddr;
use std::time::Duration;

use domain::push::SendOutcome;
use http_client::{Reply, SwrveClient, SwrveError, SwrveSettings};

use crate::receiver::{Conduct, Receiver, answer};

/// Longer than any test may take: reaching it means that something waited for the deadline that should not have.
pub(crate) const LONG: Duration = Duration::from_secs(60);
pub(crate) fn client(url: &str, timeout: Duration) -> SwrveClient {
    SwrveClient::new(&SwrveSettings {
        url: url.to_owned(),
        timeout,
        test: false,
    })
    .unwrap()
}

pub(crate) fn url_of(addr: SocketAddr) -> String {
    format!("http://{addr}/api/1")
}

pub(crate) async fn send(client: &SwrveClient) -> Reply {
    client.send("key", "device", "Hello client!", None).await
}

/// The outcome of one send to a receiver of this conduct.
pub(crate) async fn outcome(conduct: Conduct, timeout: Duration) -> SendOutcome {
    let receiver = Receiver::start(conduct).await;
    let reply = send(&client(&url_of(receiver.addr), timeout)).await;
    assert_eq!(receiver.requests().len(), 1, "exactly one request is made");
    assert!(reply.elapsed < LONG / 2, "took {:?}", reply.elapsed);
    reply.outcome
}

async fn outcome_of_answer(status_line: &str, body: &str) -> SendOutcome {
    outcome(Conduct::Answer(answer(status_line, body)), LONG).await
}

fn refused(status: u16, code: Option<i64>, message: &str) -> SendOutcome {
    SendOutcome::Refused {
        status,
        code,
        message: message.to_owned(),
    }
}

#[tokio::test]
async fn a_push_is_a_form_with_swrves_fields() {
    let receiver = Receiver::start(Conduct::Answer(answer(
        "200 OK",
        "{\"code\":200,\"message\":\"OK\"}",
    )))
    .await;
    let client = client(&url_of(receiver.addr), LONG);
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let reply = client
        .send("k-1", "device 1", "Olá & tchau=100%", Some(traceparent))
        .await;
    assert_eq!(reply.outcome, SendOutcome::Delivered);

    let request = receiver.requests().remove(0);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("post /api/1/push http/1.1\r\n"), "{head}");
    assert!(
        head.contains("content-type: application/x-www-form-urlencoded"),
        "{head}"
    );
    assert!(head.contains(&format!("traceparent: {traceparent}")), "{head}");
    assert_eq!(
        body,
        "push_key=k-1&user=device+1&message=Ol%C3%A1+%26+tchau%3D100%25"
    );
}

#[tokio::test]
async fn test_pushes_are_marked() {
    let receiver = Receiver::start(Conduct::Answer(answer("200 OK", ""))).await;
    let settings = SwrveSettings {
        url: url_of(receiver.addr),
        timeout: LONG,
        test: true,
    };
    send(&SwrveClient::new(&settings).unwrap()).await;
    assert!(receiver.requests()[0].ends_with("&test=1"));
}

#[tokio::test]
async fn an_unfit_traceparent_is_left_out() {
    let receiver = Receiver::start(Conduct::Answer(answer("200 OK", ""))).await;
    let reply = client(&url_of(receiver.addr), LONG)
        .send("k", "u", "m", Some("a\r\nb"))
        .await;
    assert_eq!(reply.outcome, SendOutcome::Delivered);
    assert!(!receiver.requests()[0].contains("traceparent"));
}

#[tokio::test]
async fn connections_are_used_again() {
    let receiver = Receiver::start(Conduct::Answer(answer(
        "200 OK",
        "{\"code\":200,\"message\":\"OK\"}",
    )))
    .await;
    let client = client(&url_of(receiver.addr), LONG);
    for _ in 0..5 {
        send(&client).await;
    }
    assert_eq!((receiver.requests().len(), receiver.connections()), (5, 1));
}

#[tokio::test]
async fn any_2xx_is_delivered_whatever_the_body() {
    for status in [
        "200 OK",
        "201 Created",
        "202 Accepted",
        "204 No Content",
        "299 Odd",
    ] {
        assert_eq!(
            outcome_of_answer(status, "").await,
            SendOutcome::Delivered,
            "{status}"
        );
    }
    let broken_off = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"co".to_vec();
    assert_eq!(
        outcome(Conduct::AnswerAndClose(broken_off), LONG).await,
        SendOutcome::Delivered
    );
    let stalled = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"co".to_vec();
    assert_eq!(
        outcome(Conduct::AnswerAndStall(stalled), LONG).await,
        SendOutcome::Delivered
    );
}

#[tokio::test]
async fn a_refusal_keeps_swrves_code_and_message() {
    let body = "{\"code\":4031,\"message\":\"Invalid API key\",\"more\":1}";
    for (status, line) in [
        (403, "403 Forbidden"),
        (429, "429 Too Many Requests"),
        (503, "503 Service Unavailable"),
    ] {
        assert_eq!(
            outcome_of_answer(line, body).await,
            refused(status, Some(4031), "Invalid API key")
        );
    }
}

#[tokio::test]
async fn a_refusal_without_swrves_json_keeps_status_and_reason() {
    for (line, body, wanted) in [
        (
            "500 Internal Server Error",
            "<html>oops</html>",
            refused(500, None, "500 Internal Server Error"),
        ),
        ("400 Bad Request", "", refused(400, None, "400 Bad Request")),
        ("400 Not Like This", "[]", refused(400, None, "400 Not Like This")),
        ("599 ", "", refused(599, None, "599")),
        (
            "404 Not Found",
            "{\"code\":17}",
            refused(404, Some(17), "404 Not Found"),
        ),
        (
            "404 Not Found",
            "{\"code\":\"17\",\"message\":1}",
            refused(404, None, "404 Not Found"),
        ),
    ] {
        assert_eq!(outcome_of_answer(line, body).await, wanted, "{line} {body}");
    }
}

#[tokio::test]
async fn a_message_is_made_storable() {
    let body = format!("{{\"code\":1,\"message\":\"a\\u0000b{}\"}}", "é".repeat(2_000));
    let SendOutcome::Refused { message, .. } = outcome_of_answer("400 Bad Request", &body).await else {
        panic!("a 400 is a refusal")
    };
    assert!(message.starts_with("a bé"));
    assert_eq!(message.chars().count(), 1_000);
}

#[tokio::test]
async fn a_redirect_is_refused_and_not_followed() {
    let elsewhere = Receiver::start(Conduct::Answer(answer("200 OK", ""))).await;
    for (status, reason) in [
        (301, "Moved Permanently"),
        (302, "Found"),
        (307, "Temporary Redirect"),
    ] {
        let line = format!(
            "HTTP/1.1 {status} {reason}\r\nLocation: http://{}/push",
            elsewhere.addr
        );
        let bytes = format!("{line}\r\nContent-Length: 0\r\n\r\n").into_bytes();
        let wanted = refused(status, None, &format!("{status} {reason}"));
        assert_eq!(outcome(Conduct::Answer(bytes), LONG).await, wanted);
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn an_endless_body_costs_neither_memory_nor_the_deadline() {
    let head = |status: &str| format!("HTTP/1.1 {status}\r\n\r\n").into_bytes();
    let chunk = vec![b'x'; 16 * 1024];
    assert_eq!(
        outcome(
            Conduct::Flood(head("503 Service Unavailable"), chunk.clone()),
            LONG
        )
        .await,
        refused(503, None, "503 Service Unavailable")
    );
    assert_eq!(
        outcome(Conduct::Flood(head("200 OK"), chunk), LONG).await,
        SendOutcome::Delivered
    );
}

#[tokio::test]
async fn a_stalled_body_of_a_refusal_ends_long_before_the_deadline() {
    let bytes = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 100\r\n\r\n{".to_vec();
    let wanted = refused(500, None, "500 Internal Server Error");
    assert_eq!(outcome(Conduct::AnswerAndStall(bytes), LONG).await, wanted);
}

#[tokio::test]
async fn a_prepared_push_sends_nothing_until_it_is_sent() {
    let receiver = Receiver::start(Conduct::Answer(answer("200 OK", ""))).await;
    let prepared = client(&url_of(receiver.addr), LONG).prepare("k", "u", "m", None);
    assert_eq!(receiver.connections(), 0);
    assert_eq!(prepared.send().await.unwrap().outcome, SendOutcome::Delivered);
}

#[test]
fn unusable_settings_are_errors() {
    let settings = |url: &str, timeout| SwrveSettings {
        url: url.to_owned(),
        timeout,
        test: false,
    };
    let error = |settings| SwrveClient::new(&settings).unwrap_err();
    assert!(matches!(error(settings("swrve", LONG)), SwrveError::UrlSyntax(_)));
    assert!(matches!(
        error(settings("ftp://swrve.test", LONG)),
        SwrveError::UrlScheme { .. }
    ));
    assert!(matches!(
        error(settings("http://swrve.test?a", LONG)),
        SwrveError::UrlSuffix
    ));
    assert!(matches!(
        error(settings("http://swrve.test", Duration::ZERO)),
        SwrveError::ZeroTimeout
    ));
}

//! Receivers that would like to cost us memory, connections or time.

use std::time::{Duration, Instant};

use domain::notification::{DeliveryOutcome, FailureKind};
use tokio::net::TcpSocket;

use super::{KEPT, client, failure, reply_of, request, send, status, url_of};
use crate::receiver::{Conduct, Receiver, answer};
use crate::swrve::LONG;

/// More than all buffers of a connection hold, and far less than the gigabytes of a flood.
const BUFFERS: u64 = 64 * 1024 * 1024;
/// For tests that want the deadline to pass.
const SHORT: Duration = Duration::from_secs(2);

fn head(lines: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{lines}\r\n").into_bytes()
}

#[tokio::test]
async fn a_ten_gigabyte_answer_is_cut_off() {
    let chunked = format!("10000\r\n{}\r\n", "x".repeat(0x10000)).into_bytes();
    for (lines, chunk) in [
        ("Content-Length: 10737418240\r\n", vec![b'x'; 64 * 1024]),
        ("Transfer-Encoding: chunked\r\n", chunked),
        ("", vec![b'x'; 64 * 1024]),
    ] {
        let receiver = Receiver::start(Conduct::Flood(head(lines), chunk)).await;
        let outcome = send(&client(), &url_of(receiver.addr)).await.outcome;
        let wanted = DeliveryOutcome::Answered {
            status: 200,
            retry_after: None,
            body: "x".repeat(KEPT),
        };
        assert_eq!(outcome, wanted, "{lines}");
        assert!(
            receiver.written() < BUFFERS,
            "{} bytes were taken",
            receiver.written()
        );
    }
}

#[tokio::test]
async fn a_byte_now_and_then_holds_no_slot_past_the_deadline() {
    let lines = "Content-Length: 10737418240\r\n";
    let started = Instant::now();
    let outcome = reply_of(Conduct::Trickle(head(lines), b'x'), LONG).await.outcome;
    assert_eq!(status(&outcome), 200);
    assert!(started.elapsed() < LONG / 2, "took {:?}", started.elapsed());

    let started = Instant::now();
    let outcome = reply_of(Conduct::Trickle(head(lines), b'x'), SHORT * 2)
        .await
        .outcome;
    assert_eq!(status(&outcome), 200);
    assert!(started.elapsed() < LONG / 2, "took {:?}", started.elapsed());
}

#[tokio::test]
async fn a_head_that_trickles_ends_at_the_deadline() {
    let unfinished = b"HTTP/1.1 200 OK\r\nX-Slow: ".to_vec();
    let (kind, message) = failure(reply_of(Conduct::Trickle(unfinished, b'x'), SHORT).await.outcome);
    assert_eq!(kind, FailureKind::Timeout);
    assert_eq!(
        message,
        "no answer within 2000 ms, after the connection was there"
    );
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off() {
    for (first, chunk) in [
        ("HTTP/1.1 200 OK\r\n", "X-More: and more\r\n".repeat(1_000)),
        ("HTTP/1.1 200 OK\r\nX-Long: ", "x".repeat(16 * 1024)),
        ("HTTP/1.1 200 ", "x".repeat(16 * 1024)),
    ] {
        let receiver = Receiver::start(Conduct::Flood(first.into(), chunk.into_bytes())).await;
        let (kind, message) = failure(send(&client(), &url_of(receiver.addr)).await.outcome);
        assert_eq!(kind, FailureKind::Protocol, "{message}");
        assert!(
            receiver.written() < BUFFERS,
            "{} bytes were taken",
            receiver.written()
        );
    }
}

#[tokio::test]
async fn interim_answers_without_end_end_at_the_deadline() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let conduct = Conduct::Flood(Vec::new(), interim.repeat(100).into_bytes());
    let started = Instant::now();
    let (kind, _) = failure(reply_of(conduct, SHORT).await.outcome);
    assert_eq!(kind, FailureKind::Timeout);
    assert!(started.elapsed() < LONG / 2, "took {:?}", started.elapsed());
}

#[tokio::test]
async fn silence_ends_at_the_deadline() {
    let reply = reply_of(Conduct::AnswerAndStall(Vec::new()), SHORT).await;
    assert!(reply.elapsed >= SHORT);
    let (kind, message) = failure(reply.outcome);
    assert_eq!(kind, FailureKind::Timeout);
    assert_eq!(
        message,
        "no answer within 2000 ms, after the connection was there"
    );
}

#[tokio::test]
async fn attempts_do_not_wait_for_each_other() {
    let receiver = Receiver::start(Conduct::AnswerAndStall(Vec::new())).await;
    let (client, url) = (client(), url_of(receiver.addr));
    let started = Instant::now();
    let attempts: Vec<_> = (0..50)
        .map(|_| {
            let (client, request) = (client.clone(), request(&url, SHORT));
            tokio::spawn(async move { client.send(request).await })
        })
        .collect();
    for attempt in attempts {
        assert_eq!(failure(attempt.await.unwrap().outcome).0, FailureKind::Timeout);
    }
    assert!(started.elapsed() < SHORT * 10);
    assert_eq!(receiver.connections(), 50);
}

#[tokio::test]
async fn a_lost_connection_is_a_failure_to_connect_and_not_tried_again() {
    for conduct in [
        Conduct::Reset,
        Conduct::AnswerAndClose(Vec::new()),
        Conduct::AnswerAndClose(b"HTTP/1.1 200 OK\r\nConte".to_vec()),
    ] {
        let (kind, message) = failure(reply_of(conduct, LONG).await.outcome);
        assert_eq!(kind, FailureKind::Connect, "{message}");
        assert!(
            [
                "the connection was closed without an answer",
                "the connection was reset without an answer",
            ]
            .contains(&message.as_str()),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_refused_connection_is_a_failure_to_connect() {
    // Bound, so that no other process gets the port, but not listening.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = socket.local_addr().unwrap();
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://{addr}/token-9");
        let (kind, message) = failure(send(&client(), &url).await.outcome);
        assert_eq!(kind, FailureKind::Connect, "{message}");
        assert_eq!(message, "the connection was refused");
        for hidden in ["token-9", "127.0.0.1", &addr.port().to_string()] {
            assert!(!message.contains(hidden), "{message}");
        }
    }
}

#[tokio::test]
async fn what_is_no_http_is_a_failure_of_the_protocol() {
    for bytes in [
        b"220 mail.test ESMTP\r\n\r\n".to_vec(),
        b"HTTP/9.9 200 OK\r\n\r\n".to_vec(),
        answer("abc OK", ""),
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".to_vec(),
        b"HTTP/1.1 200 OK\r\nNo colon here\r\n\r\n".to_vec(),
    ] {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (kind, message) = failure(reply_of(Conduct::AnswerAndClose(bytes), LONG).await.outcome);
        assert_eq!(kind, FailureKind::Protocol, "{text}: {message}");
    }
}

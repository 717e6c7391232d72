//! Attempts that got no answer.

use std::time::{Duration, Instant};

use domain::push::SendOutcome;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};

use crate::receiver::{Conduct, Receiver};
use crate::swrve::{LONG, client, outcome, send, url_of};

/// For tests that want the deadline to pass.
const SHORT: Duration = Duration::from_secs(2);

fn unreachable(outcome: SendOutcome) -> String {
    match outcome {
        SendOutcome::Unreachable { message } => message,
        other => panic!("expected unreachable, got {other:?}"),
    }
}

#[tokio::test]
async fn silence_until_the_deadline_is_unreachable() {
    let half_a_head = b"HTTP/1.1 200 OK\r\nContent-".to_vec();
    let (silence, half) = tokio::join!(
        outcome(Conduct::AnswerAndStall(Vec::new()), SHORT),
        outcome(Conduct::AnswerAndStall(half_a_head), SHORT),
    );
    assert_eq!(unreachable(silence), "no answer within 2000 ms");
    assert_eq!(unreachable(half), "no answer within 2000 ms");
}

#[tokio::test]
async fn a_connection_closed_without_an_answer_is_unreachable() {
    let message = unreachable(outcome(Conduct::AnswerAndClose(Vec::new()), LONG).await);
    assert_eq!(message, "the connection was closed without an answer");
}

#[tokio::test]
async fn no_http_is_unreachable() {
    let greeting = b"220 mail.test ESMTP\r\n".to_vec();
    let message = unreachable(outcome(Conduct::AnswerAndClose(greeting), LONG).await);
    assert!(message.starts_with("the answer is not HTTP: "), "{message}");
}

#[tokio::test]
async fn a_failed_tls_handshake_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        let _ = stream.read(&mut [0; 1024]).await;
    });
    let message = unreachable(send(&client(&format!("https://{addr}"), LONG)).await.outcome);
    assert!(message.starts_with("the TLS handshake failed: "), "{message}");
    plain.await.unwrap();
}

#[tokio::test]
async fn unreachable_texts_hold_the_cause_but_no_credentials_and_no_payload() {
    // Bound, so that no other process gets the port, but not listening.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let refusing = socket.local_addr().unwrap();
    for (host, said) in [
        (refusing.to_string(), "the connection was refused"),
        (
            "no-such-host.invalid".to_owned(),
            "the connection could not be opened: ",
        ),
    ] {
        let client = client(&format!("http://user:hunter2@{host}/api"), LONG);
        let message = unreachable(
            client
                .send("secret-key", "device-9", "private text", None)
                .await
                .outcome,
        );
        assert!(message.starts_with(said), "{message}");
        for secret in ["hunter2", "user:", "secret-key", "device-9", "private"] {
            assert!(!message.contains(secret), "{message}");
        }
        assert!(!format!("{client:?}").contains("hunter2"));
    }
}

#[tokio::test]
async fn sends_do_not_wait_for_each_other() {
    let receiver = Receiver::start(Conduct::AnswerAndStall(Vec::new())).await;
    let client = client(&url_of(receiver.addr), SHORT);
    let started = Instant::now();
    let sends: Vec<_> = (0..50)
        .map(|_| tokio::spawn(client.prepare("k", "u", "m", None).send()))
        .collect();
    for send in sends {
        unreachable(send.await.unwrap().unwrap().outcome);
    }
    assert!(started.elapsed() < SHORT * 50);
    assert_eq!(receiver.connections(), 50);
}

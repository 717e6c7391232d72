//! `receive`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::postrider::{Running, postrider};

const BODY: &str = r#"{"id":"evt_1","type":"domain.created","timestamp":"2025-07-20T08:26:40Z","data":{}}"#;

/// Where it says that it listens.
fn address(process: &mut Running) -> String {
    let line = process.line();
    let url = line.trim_end().strip_prefix("listening on http://");
    url.expect("the address").to_owned()
}

/// The status of the answer to a webhook.
fn post(address: &str) -> u16 {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = BODY.len();
    write!(
        stream,
        "POST /hook HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{BODY}"
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let status = answer.split(' ').nth(1).expect("a status line");
    status.parse().expect("a status")
}

#[tokio::test]
async fn the_receiver_prints_what_comes_and_behaves_as_told() {
    let mut process =
        postrider("receive --listen 127.0.0.1:0 --answer domain.created=503,200 --header Retry-After:1")
            .start();
    let address = address(&mut process);
    assert_eq!((post(&address), post(&address)), (503, 200));
    let (first, second) = (process.line(), process.line());
    assert!(
        first.contains("503     unchecked  domain.created            evt_1  after "),
        "{first}"
    );
    assert!(
        second.contains("200     unchecked") && second.contains("for the 2nd time"),
        "{second}"
    );
    let (status, rest) = process.stop().await;
    assert_eq!((status.code(), rest.as_str()), (Some(0), ""));
}

#[test]
fn secrets_come_from_the_environment_and_requests_can_be_printed_as_json() {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let mut quiet = postrider("receive --listen 127.0.0.1:0")
        .env("WEBHOOK_SECRET", secret)
        .start();
    let strict = address(&mut quiet);
    assert_eq!(post(&strict), 401);
    assert!(quiet.line().contains("401     unsigned"));
    let mut json = postrider("receive --json --listen 127.0.0.1:0").start();
    let line: serde_json::Value = serde_json::from_str(&json.line()).expect("a line of JSON");
    let url = line["listening"].as_str().expect("the address");
    assert_eq!(post(url.trim_start_matches("http://")), 200);
    let line: serde_json::Value = serde_json::from_str(&json.line()).expect("a line of JSON");
    assert_eq!((&line["id"], &line["body"]), (&"evt_1".into(), &BODY.into()));
}

#[test]
fn what_the_receiver_cannot_use_is_refused_and_no_secret_is_shown() {
    for (arguments, code, part) in [
        ("receive --answer 42", 2, "between 200 and 599"),
        ("receive --secret whsec_c2VjcmV0", 1, "at least 24 bytes"),
        ("receive --script /nowhere.json", 1, "/nowhere.json"),
        ("receive --tls-cert /nowhere.pem", 2, "--tls-key"),
        (
            "receive --tls-cert /nowhere.pem --tls-key /nowhere.pem",
            1,
            "/nowhere.pem",
        ),
    ] {
        let finished = postrider(arguments).run();
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
        assert!(!finished.stderr.contains("c2VjcmV0"), "{}", finished.stderr);
    }
}

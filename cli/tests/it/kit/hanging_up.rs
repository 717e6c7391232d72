//! `listen` between callers that hang up, or never come to an end, and an endpoint that takes its time.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::listening::trigger;
use super::{SECRET, json_line, listen, url};

#[tokio::test]
async fn a_caller_that_hangs_up_before_the_answer_is_shown_and_answers_go_back_with_their_headers() {
    let target = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let options = format!(
        "--secret {SECRET} --count 2 --forward-to http://{}/",
        target.local_addr().expect("an address")
    );
    let (mut process, introduction) = listen(&options);
    let request = trigger(&format!(
        "domain.created --to {} --dry-run --json",
        url(&introduction)
    ));
    let request: Value = serde_json::from_str(&request.stdout).expect("JSON");
    let (at, request) = (url(&introduction).to_owned(), &request);

    // The answer is held back until the caller is gone.
    let address = at.strip_prefix("http://").expect("HTTP");
    let mut asking = TcpStream::connect(address).await.expect("it listens");
    let raw = raw(request).into_bytes();
    asking.write_all(&raw).await.expect("it is there");
    let (mut handed_on, _) = target.accept().await.expect("a connection");
    drop(asking);
    answer(&mut handed_on, request).await;
    assert_eq!(json_line(&mut process)["status"], 503);

    let asking = tokio::spawn(send(at, request.clone()));
    let (mut handed_on, _) = target.accept().await.expect("a connection");
    answer(&mut handed_on, request).await;
    let answered = asking.await.expect("no panic").expect("an answer");
    assert_eq!(
        (answered.status().as_u16(), &answered.headers()["retry-after"]),
        (503, &"7".parse().expect("a value"))
    );
    assert_eq!(process.end().await, Some(0));
}

/// Sends what `trigger --dry-run --json` printed.
async fn send(to: String, request: Value) -> reqwest::Result<reqwest::Response> {
    lifecycle::crypto::install_default_provider();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let mut post = client.post(to);
    for (name, value) in request["headers"].as_object().expect("headers") {
        post = post.header(name, value.as_str().expect("text"));
    }
    post.body(request["body"].as_str().expect("text").to_owned())
        .send()
        .await
}

fn raw(request: &Value) -> String {
    let body = request["body"].as_str().expect("text");
    let headers = request["headers"].as_object().expect("headers");
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}\r\n", value.as_str().expect("text")))
        .collect();
    let length = body.len();
    format!("POST / HTTP/1.1\r\nhost: listen\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

/// Reads the whole request, and asks for another one later.
async fn answer(connection: &mut TcpStream, request: &Value) {
    let (body, mut read) = (request["body"].as_str().expect("text"), Vec::new());
    while !read.ends_with(body.as_bytes()) {
        let bytes = connection.read_buf(&mut read).await.expect("it is there");
        assert_ne!(bytes, 0, "the request broke off");
    }
    let answer = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 7\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    connection.write_all(answer).await.expect("it is there");
}

#[tokio::test]
async fn a_request_that_never_comes_to_its_end_keeps_no_other_waiting() {
    let (mut process, introduction) = listen(&format!("--secret {SECRET} --count 1"));
    let to = url(&introduction);
    let address = to.strip_prefix("http://").expect("HTTP");
    let mut half = Vec::new();
    for begun in [
        "POST / HTTP/1.1\r\nho",
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{",
    ] {
        let mut connection = TcpStream::connect(address).await.expect("it listens");
        connection.write_all(begun.as_bytes()).await.expect("it is there");
        half.push(connection);
    }
    let sent = trigger(&format!("domain.created --to {to}"));
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(json_line(&mut process)["verdict"], "verified");
    assert_eq!(process.end().await, Some(0));
}

//! The listener with real connections. Every count here is one that the server keeps to, whatever the machine's pace.

use std::net::SocketAddr;

use axum::routing::get;
use lifecycle::Drained;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// Longer than anything here can take.
const PATIENCE: Duration = Duration::from_mins(1);

struct Server {
    address: SocketAddr,
    connections: TaskGroup,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn start(in_all: usize) -> Self {
        Self::of(Router::new().route("/", get(async || "well")), in_all).await
    }

    async fn of(router: Router, in_all: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, stop) = (TaskGroup::new(), CancellationToken::new());
        let limits = ConnectionLimits {
            in_all,
            per_peer: Some(1),
            trusted_proxies: Vec::new(),
        };
        let (group, stopped) = (connections.clone(), stop.clone());
        let serving = tokio::spawn(async move { accept(listener, router, &group, stopped, limits).await });
        Self {
            address,
            connections,
            stop,
            serving,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn stop(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
        assert_eq!(self.connections.drain(PATIENCE).await, Drained::Complete);
    }
}

/// What comes back until the server closes, or until the body `well` is there.
async fn answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let reading = async {
        let mut buffer = [0; 1024];
        while !text.ends_with("well") {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(read) => text.push_str(std::str::from_utf8(&buffer[..read]).unwrap()),
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap();
    text
}

async fn ask(stream: &mut TcpStream) -> String {
    // A refused connection may be closed before anything is written.
    let _ = stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    answer(stream).await
}

#[tokio::test]
async fn a_connection_past_the_limit_is_closed_and_an_ended_one_makes_room() {
    let server = Server::start(2).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    assert!(ask(&mut first).await.starts_with("HTTP/1.1 200"));
    assert!(ask(&mut second).await.starts_with("HTTP/1.1 200"));
    assert_eq!(ask(&mut server.connect().await).await, "");
    drop(second);
    let again = async { while ask(&mut server.connect().await).await.is_empty() {} };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
    assert!(ask(&mut first).await.starts_with("HTTP/1.1 200"), "it stays open");
    drop(first);
    server.stop().await;
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused_before_it_ends() {
    let server = Server::start(8).await;
    let mut stream = server.connect().await;
    let head = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}", "a".repeat(HEAD_BYTES));
    stream.write_all(head.as_bytes()).await.unwrap();
    let refusal = answer(&mut stream).await;
    assert!(refusal.starts_with("HTTP/1.1 431"), "{refusal}");
    server.stop().await;
}

#[tokio::test]
async fn a_head_of_too_many_lines_is_refused() {
    let server = Server::start(8).await;
    for (headers, status) in [(HEADERS - 1, "200"), (HEADERS, "431")] {
        let mut stream = server.connect().await;
        let lines = "x: y\r\n".repeat(headers);
        let head = format!("GET / HTTP/1.1\r\nhost: x\r\n{lines}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let found = answer(&mut stream).await;
        assert!(
            found.starts_with(&format!("HTTP/1.1 {status}")),
            "{headers}: {found}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn nothing_of_http_stays_with_a_connection_that_goes_on_in_another_protocol() {
    let (hand_over, mut handed_over) = tokio::sync::mpsc::channel(1);
    let upgrade = async move |mut request: axum::extract::Request| {
        let upgrade = Upgrade::of(request.extensions_mut()).unwrap();
        tokio::spawn(async move { hand_over.send(upgrade.stream().await.unwrap()).await.unwrap() });
        let headers = [
            (http::header::CONNECTION, "upgrade"),
            (http::header::UPGRADE, "other"),
        ];
        (http::StatusCode::SWITCHING_PROTOCOLS, headers)
    };
    let server = Server::of(Router::new().route("/", get(upgrade)), 1).await;
    let mut client = server.connect().await;
    let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: other\r\n\r\nahead";
    client.write_all(request).await.unwrap();
    let upgraded = tokio::time::timeout(PATIENCE, handed_over.recv()).await.unwrap();
    let mut upgraded = upgraded.unwrap();
    let mut said = Vec::from(upgraded.ahead);
    assert!(
        said.capacity() <= "ahead".len(),
        "{} bytes are kept",
        said.capacity()
    );
    while said.len() < "ahead".len() {
        said.push(upgraded.stream.read_u8().await.unwrap());
    }
    assert_eq!(said, b"ahead");
    drop((client, upgraded.stream));
    server.stop().await;
}

//! A collector that keeps what it is sent, and a GET over a plain socket.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::SOON;

type Received = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// An OTLP/HTTP receiver.
pub(crate) struct Collector {
    pub(crate) endpoint: String,
    received: Received,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let received = Received::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new()
            .route("/v1/traces", post(keep))
            .with_state(Arc::clone(&received));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { endpoint, received }
    }

    pub(crate) fn received(&self) -> Vec<(HeaderMap, Bytes)> {
        self.received.lock().unwrap().clone()
    }
}

async fn keep(State(received): State<Received>, headers: HeaderMap, body: Bytes) {
    received.lock().unwrap().push((headers, body));
}

/// The status line and headers, and the body, of a GET.
pub(crate) async fn get(address: std::net::SocketAddr, path: &str) -> (String, String) {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    };
    let response = tokio::time::timeout(SOON, exchange)
        .await
        .expect("answered in time");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

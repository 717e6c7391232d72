//! A collector that keeps what it is sent.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use tokio::net::TcpListener;

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

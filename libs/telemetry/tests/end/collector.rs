//! A collector that keeps what it is sent.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::routing::post;
use tokio::net::TcpListener;

/// A request as it came.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Request {
    pub(crate) fn holds(&self, part: &[u8]) -> bool {
        self.body.windows(part.len()).any(|window| window == part)
    }
}

type Received = Arc<Mutex<Vec<Request>>>;

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
            .route("/v1/logs", post(keep))
            .route("/v1/metrics", post(keep))
            .with_state(Arc::clone(&received));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { endpoint, received }
    }

    /// The last request at a path that holds a text.
    pub(crate) fn with(&self, path: &str, text: &str) -> Request {
        let received = self.received.lock().unwrap();
        let holding = |request: &&Request| request.path == path && request.holds(text.as_bytes());
        let found = received.iter().rev().find(holding).cloned();
        found.unwrap_or_else(|| panic!("{text:?} is in none of {} requests", received.len()))
    }

    /// Whether a text came at all.
    pub(crate) fn has(&self, text: &str) -> bool {
        let received = self.received.lock().unwrap();
        received.iter().any(|request| request.holds(text.as_bytes()))
    }
}

async fn keep(State(received): State<Received>, uri: Uri, headers: HeaderMap, body: Bytes) {
    received.lock().unwrap().push(Request {
        path: uri.path().to_owned(),
        headers,
        body,
    });
}

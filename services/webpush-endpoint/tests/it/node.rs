//! A connection node that answers as it is told, and keeps in mind what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::routing::put;
use http::StatusCode;
use serde_json::Value;
use testkit::eventually;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// What a node does with a request.
#[derive(Clone)]
pub(crate) enum Does {
    Answer(u16),
    /// Answers once it is let, if ever.
    Wait(Arc<Notify>),
}

/// What a node was asked: the path, and the body of a message.
pub(crate) type Asked = (String, Value);

#[derive(Clone, Default)]
struct Script {
    next: Arc<Mutex<VecDeque<Does>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A scripted node.
pub(crate) struct Node {
    pub(crate) url: String,
    script: Script,
    serving: tokio::task::JoinHandle<()>,
}

impl Node {
    pub(crate) async fn start() -> Self {
        let script = Script::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new()
            .route("/push/{uaid}", put(answer))
            .route("/notif/{uaid}", put(answer))
            .with_state(script.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { url, script, serving }
    }

    /// What it does with the next requests; after them it answers 200.
    pub(crate) fn does(&self, actions: impl IntoIterator<Item = Does>) {
        self.script.next.lock().unwrap().extend(actions);
    }

    pub(crate) fn answers(&self, statuses: &[u16]) {
        self.does(statuses.iter().map(|status| Does::Answer(*status)));
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.script.asked.lock().unwrap().clone()
    }

    /// The requests so far, each as `push` or `notif`.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let kind = |(path, _): Asked| path.split('/').nth(1).unwrap().to_owned();
        self.asked().into_iter().map(kind).collect()
    }

    pub(crate) async fn was_asked(&self, kinds: &[&str]) {
        eventually("the node is asked", async || {
            (self.kinds() == kinds).then_some(())
        })
        .await;
    }

    /// Takes no connections any more.
    pub(crate) async fn end(&mut self) {
        self.serving.abort();
        let _ = (&mut self.serving).await;
    }
}

async fn answer(State(script): State<Script>, Path(_): Path<String>, request: Request) -> StatusCode {
    let path = request.uri().path().to_owned();
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let document = serde_json::from_slice(&body).unwrap_or(Value::Null);
    script.asked.lock().unwrap().push((path, document));
    let next = script.next.lock().unwrap().pop_front();
    match next {
        None => StatusCode::OK,
        Some(Does::Answer(status)) => StatusCode::from_u16(status).unwrap(),
        Some(Does::Wait(notify)) => {
            notify.notified().await;
            StatusCode::OK
        }
    }
}

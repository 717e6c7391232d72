//! What operators and load balancers ask, under the paths that this kind of server has always had.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use serde_json::{Value, json};

use crate::node::Node;

/// Longest wait for the database.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The routes.
pub(crate) fn routes(node: Arc<Node>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/__heartbeat__", get(health))
        .route("/status", get(status))
        .with_state(node)
        .route("/__lbheartbeat__", get(StatusCode::OK))
        .route("/__version__", get(version))
        .route("/v1/err/crit", get(teapot))
        .route("/__error__", get(teapot))
}

async fn health(State(node): State<Arc<Node>>) -> Json<Value> {
    Json(json!({
        "status": state(&node).await,
        "version": env!("CARGO_PKG_VERSION"),
        "connections": node.registry.len(),
    }))
}

async fn status(State(node): State<Arc<Node>>) -> Json<Value> {
    Json(json!({"status": state(&node).await, "version": env!("CARGO_PKG_VERSION")}))
}

async fn state(node: &Node) -> &'static str {
    match tokio::time::timeout(TIMEOUT, node.store.is_migrated()).await {
        Ok(Ok(true)) => "OK",
        _ => "ERROR",
    }
}

async fn version() -> Json<Value> {
    Json(json!({"version": env!("CARGO_PKG_VERSION"), "name": env!("CARGO_PKG_NAME")}))
}

/// For those who want to see whether errors are noticed.
async fn teapot() -> (StatusCode, Json<Value>) {
    tracing::error!("an error for the sake of a test was asked for");
    let problem = json!({"code": 418, "errno": 999, "error": "Test Error", "message": "this is a test"});
    (StatusCode::IM_A_TEAPOT, Json(problem))
}

//! Whether the service works, and which it is, at the paths that monitors of such services know.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde_json::{Value, json};
use webpush::Refusal;

use crate::answer::Refused;
use crate::app::App;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How long the database may take for a sign of life.
const LIMIT: Duration = Duration::from_secs(2);

/// `GET /health` and `GET /__heartbeat__`.
pub(crate) async fn health(State(app): State<Arc<App>>) -> (StatusCode, Json<Value>) {
    let (status, word) = match store::within(LIMIT, app.store.ping()).await {
        Ok(()) => (StatusCode::OK, "OK"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "ERROR"),
    };
    let table = json!({ "status": if word == "OK" { "OK" } else { "NOT OK" } });
    let document = json!({
        "status": word,
        "version": VERSION,
        "router_table": table,
        "message_table": table,
        "routers": {},
    });
    (status, Json(document))
}

/// `GET /__lbheartbeat__`: the process is there.
pub(crate) async fn alive() {}

/// `GET /status`.
pub(crate) async fn status() -> Json<Value> {
    Json(json!({ "status": "OK", "version": VERSION }))
}

/// `GET /__version__`.
pub(crate) async fn version() -> Json<Value> {
    Json(json!({ "source": "postrider", "version": VERSION }))
}

/// `GET /v1/err` and `GET /__error__`: an error on demand, to see what becomes of one.
pub(crate) async fn error() -> Refused {
    tracing::info!("an error was asked for");
    Refusal::Test.into()
}

//! The HTTP endpoints every process has for operators: `/healthz`, `/readyz`, `/metrics`.
//!
//! It deliberately has no authentication: it listens on its own address, which is not meant for the outside.

use std::future::IntoFuture;
use std::io;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use lifecycle::{Readiness, Shutdown};
use tokio::net::TcpListener;

use crate::{Metric, recorder};

/// The version of the text format that the exporter writes.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How long requests under way may take after the shutdown; a client that never finishes its request must not hold the process.
const DRAIN: Duration = Duration::from_secs(2);

/// How often the conditions of readiness become metrics for those who do not ask here: a collector that metrics are sent to.
const KEEPING: Duration = Duration::from_secs(5);

/// Serves [`router`] until the shutdown.
pub async fn serve(listener: TcpListener, readiness: Readiness, shutdown: Shutdown) -> io::Result<()> {
    let stop = shutdown.clone();
    let server = axum::serve(listener, router(readiness.clone()))
        .with_graceful_shutdown(async move { stop.cancelled().await })
        .into_future();
    let overdue = async {
        shutdown.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    let keeping = async {
        let mut ticks = tokio::time::interval(KEEPING);
        loop {
            ticks.tick().await;
            keep(&readiness);
        }
    };
    tokio::select! {
        served = server => served,
        () = overdue => Ok(()),
        () = keeping => Ok(()),
    }
}

/// Makes metrics of the conditions as they stand.
fn keep(readiness: &Readiness) {
    for (condition, reason) in readiness.report().conditions {
        let holds = f64::from(u8::from(reason.is_none()));
        Metric::Ready.set_with(&[("condition", condition.as_str())], holds);
    }
}

/// [`probes`] and `/metrics` (all metrics of the process as Prometheus text).
pub fn router(readiness: Readiness) -> Router {
    let metrics = Router::new()
        .route("/metrics", get(metrics))
        .with_state(readiness.clone());
    probes(readiness).merge(metrics)
}

/// `/healthz` (200 as long as the process can answer at all) and `/readyz` (200 when every condition of `readiness` holds, otherwise
/// 503, both with the report as JSON), for a service that has them on its own listener too.
pub fn probes(readiness: Readiness) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(readiness)
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(State(readiness): State<Readiness>) -> Response {
    let report = readiness.report();
    let status = if report.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(report)).into_response()
}

async fn metrics(State(readiness): State<Readiness>) -> impl IntoResponse {
    // Asked now, as for `/readyz`: both tell the same.
    keep(&readiness);
    (
        [(header::CONTENT_TYPE, PROMETHEUS_TEXT)],
        recorder::render_metrics(),
    )
}

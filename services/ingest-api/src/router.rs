//! Which path leads where, and what is observed of every request.

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use http::{HeaderName, Method, StatusCode, header};
use lifecycle::Readiness;
use telemetry::Metric;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::app::App;
use crate::problem::{Problem, ProblemKind};
use crate::{docs_page, lookup, submit};

/// Label of requests for paths that do not exist; the paths themselves are the callers' and without end.
const UNMATCHED: &str = "unmatched";

/// The routes of the service.
pub(crate) fn router(app: Arc<App>, readiness: Readiness) -> Router {
    Router::new()
        .route("/push", post(submit::submit))
        .route("/push/{id}", get(lookup::find))
        .route("/openapi.json", get(openapi))
        .route("/docs", get(docs))
        .with_state(Arc::clone(&app))
        .merge(telemetry::admin::probes(readiness))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(app, observe))
}

/// The OpenAPI document of this service.
#[utoipa::path(
    get, path = "/openapi.json", tag = "service", operation_id = "openapi",
    responses((status = 200, description = "This document.", body = serde_json::Value))
)]
pub(crate) async fn openapi(State(app): State<Arc<App>>) -> ([(HeaderName, &'static str); 1], Bytes) {
    ([(header::CONTENT_TYPE, "application/json")], app.openapi.clone())
}

/// The same as a page for people.
#[utoipa::path(
    get, path = "/docs", tag = "service", operation_id = "docs",
    responses((status = 200, description = "A page without scripts or outside resources.",
        body = String, content_type = "text/html"))
)]
pub(crate) async fn docs(State(app): State<Arc<App>>) -> ([(HeaderName, &'static str); 2], Bytes) {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            header::CONTENT_SECURITY_POLICY,
            docs_page::CONTENT_SECURITY_POLICY,
        ),
    ];
    (headers, app.docs.clone())
}

async fn not_found() -> Problem {
    Problem::new(ProblemKind::NotFound, "the path does not exist")
}

async fn method_not_allowed() -> Problem {
    Problem::new(
        ProblemKind::MethodNotAllowed,
        "the path exists, but not for this method",
    )
}

/// Counts, traces and, at debug level, logs a request.
async fn observe(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
    let span = if app.traced {
        request_span(&request, &method, route)
    } else {
        Span::none()
    };
    let response = next.run(request).instrument(span.clone()).await;
    let (status, elapsed) = (response.status(), start.elapsed());
    span.record("http.response.status_code", status.as_u16());
    if status == StatusCode::ACCEPTED && route == "/push" {
        app.meters.accepted(elapsed);
    } else {
        Metric::HttpRequests.increment_with(&[("route", route), ("status", status.as_str())], 1);
    }
    tracing::debug!(%method, route, status = status.as_u16(), ?elapsed, "answered");
    response
}

/// The span of a request, named as OpenTelemetry's conventions for HTTP servers want it.
fn request_span(request: &Request, method: &Method, route: &str) -> Span {
    let span = tracing::info_span!(
        "http_request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        http.request.method = %method,
        http.route = route,
        http.response.status_code = tracing::field::Empty,
    );
    let inbound = request.headers().get("traceparent");
    if let Some(inbound) = inbound.and_then(|value| value.to_str().ok()) {
        telemetry::traceparent::set_parent(&span, inbound);
    }
    span
}

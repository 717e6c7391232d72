//! What is observed of every request: a count, a span, and a line at debug level.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode};
use telemetry::Metric;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

/// Label of requests for paths that do not exist; the paths themselves are the callers' and without end.
const UNMATCHED: &str = "unmatched";
const TRACEPARENT: &str = "traceparent";

type Count = Box<dyn Fn(&str, StatusCode, Duration) -> bool + Send + Sync>;

/// Watches the requests of a service.
pub struct Observer {
    traced: bool,
    own: Option<Count>,
}

impl Observer {
    /// `traced`: whether a span is made for each request.
    #[must_use]
    pub fn new(traced: bool) -> Self {
        Self { traced, own: None }
    }

    /// Lets the service count with handles that it holds: looking the metric up for each request costs a hot path
    /// dearly. `count` gets the route, the status and the time until the answer, and returns whether it has counted the
    /// request; if not, it is counted here.
    #[must_use]
    pub fn counting(
        self,
        count: impl Fn(&str, StatusCode, Duration) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            own: Some(Box::new(count)),
            ..self
        }
    }

    /// Puts the observer around routes.
    pub(crate) fn around(self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(Arc::new(self), observe))
    }

    fn count(&self, route: &str, status: StatusCode, elapsed: Duration) {
        if self.own.as_ref().is_some_and(|own| own(route, status, elapsed)) {
            return;
        }
        Metric::HttpRequests.increment_with(&[("route", route), ("status", status.as_str())], 1);
    }
}

async fn observe(State(observer): State<Arc<Observer>>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
    let span = if observer.traced {
        request_span(&request, &method, route)
    } else {
        Span::none()
    };
    let response = next.run(request).instrument(span.clone()).await;
    let (status, elapsed) = (response.status(), start.elapsed());
    if !span.is_none() {
        finish(&span, status);
    }
    observer.count(route, status, elapsed);
    tracing::debug!(%method, route, status = status.as_u16(), ?elapsed, "answered");
    response
}

/// Notes the answer. Only our own failures are errors of a server, as OpenTelemetry's conventions want it.
fn finish(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("error.type", status.as_str());
        span.record("otel.status_code", "ERROR");
    }
}

/// The span of a request, named as OpenTelemetry's conventions for HTTP servers want it. The path and the
/// query are left out: they are whatever the caller wrote.
fn request_span(request: &Request, method: &Method, route: &str) -> Span {
    let span = tracing::info_span!(
        "http_request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        http.request.method = %method,
        http.route = route,
        http.response.status_code = tracing::field::Empty,
        error.type = tracing::field::Empty,
        otel.status_code = tracing::field::Empty,
    );
    let inbound = request.headers().get(TRACEPARENT);
    if let Some(inbound) = inbound.and_then(|value| value.to_str().ok()) {
        telemetry::traceparent::set_parent(&span, inbound);
    }
    span
}

/// The trace that the work of a request belongs to: the request's own span when requests are `traced`, which continues
/// the caller's; else the caller's own, if it is valid.
#[must_use]
pub fn traceparent(headers: &HeaderMap, traced: bool) -> Option<String> {
    let own = traced.then(telemetry::traceparent::current).flatten();
    own.or_else(|| {
        let inbound = headers.get(TRACEPARENT)?.to_str().ok()?;
        telemetry::traceparent::is_valid(inbound).then(|| inbound.to_owned())
    })
}

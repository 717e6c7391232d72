//! What is observed of every request: a count, a span, and a line at debug level.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, StatusCode};
use telemetry::Metric;
use tokio::time::Instant;
use tracing::{Instrument as _, Level, Span};

use crate::refusals::Refusals;

/// Label of requests for paths that do not exist; the paths themselves are the callers' and without end.
const UNMATCHED: &str = "unmatched";
const TRACEPARENT: &str = "traceparent";

type Count = Box<dyn Fn(&str, StatusCode, Duration) -> bool + Send + Sync>;

/// What the `traceparent` of a request is to its span.
#[derive(Clone, Copy)]
enum Callers {
    /// The parent: the trace and the decision to record it are the caller's.
    Ours,
    /// A link: a stranger decides neither.
    Strangers,
}

/// Watches the requests of a service.
pub struct Observer {
    traced: bool,
    callers: Callers,
    refusals: Refusals,
    own: Option<Count>,
}

impl Observer {
    /// `traced`: whether a span is made for each request.
    pub fn new(traced: bool) -> Self {
        Self {
            traced,
            callers: Callers::Ours,
            refusals: Refusals::default(),
            own: None,
        }
    }

    /// Begins a new trace with each request, of which as many are recorded as the configuration says, and links the caller's.
    pub fn of_strangers(self) -> Self {
        Self {
            callers: Callers::Strangers,
            ..self
        }
    }

    /// Lets the service count with handles that it holds: looking the metric up for each request costs a hot path
    /// dearly. `count` gets the route, the status and the time until the answer, and returns whether it has counted the
    /// request; if not, it is counted here.
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
    pub fn around(self, routes: Router) -> Router {
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
    let key = request.headers().get(AUTHORIZATION).cloned();
    let span = if observer.traced {
        request_span(&request, &method, route, observer.callers)
    } else {
        Span::none()
    };
    let response = next.run(request).instrument(span.clone()).await;
    let (status, elapsed) = (response.status(), start.elapsed());
    if !span.is_none() {
        finish(&span, status);
    }
    observer.count(route, status, elapsed);
    observer.refusals.tell(status, route, key.as_ref());
    if tracing::enabled!(Level::DEBUG) {
        // In the span, so that the line has the trace of the request.
        let _entered = span.enter();
        tracing::debug!(%method, route, status = status.as_u16(), ?elapsed, "answered");
    }
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
fn request_span(request: &Request, method: &Method, route: &str, callers: Callers) -> Span {
    let method = known(method);
    let span = tracing::info_span!(
        "http_request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        http.request.method = method,
        http.route = route,
        http.response.status_code = tracing::field::Empty,
        error.type = tracing::field::Empty,
        otel.status_code = tracing::field::Empty,
    );
    let inbound = request.headers().get(TRACEPARENT);
    if let Some(inbound) = inbound.and_then(|value| value.to_str().ok()) {
        match callers {
            Callers::Ours => telemetry::traceparent::set_parent(&span, inbound),
            Callers::Strangers => telemetry::traceparent::link(&span, inbound),
        }
    }
    span
}

/// The method, as OpenTelemetry's conventions want it: any token can be one, and each would make a name of its own.
fn known(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::PATCH
        | Method::DELETE
        | Method::OPTIONS
        | Method::CONNECT
        | Method::TRACE => method.as_str(),
        _ => "_OTHER",
    }
}

/// The trace that the work of a request belongs to: the request's own span when requests are `traced`, which continues
/// the caller's; else the caller's own, if it is valid.
pub fn traceparent(headers: &HeaderMap, traced: bool) -> Option<String> {
    let own = traced.then(telemetry::traceparent::current).flatten();
    own.or_else(|| {
        let inbound = headers.get(TRACEPARENT)?.to_str().ok()?;
        telemetry::traceparent::is_valid(inbound).then(|| inbound.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_are_made_up_share_a_name() {
        assert_eq!(known(&Method::PATCH), "PATCH");
        assert_eq!(known(&Method::from_bytes(b"X-4711").unwrap()), "_OTHER");
    }
}

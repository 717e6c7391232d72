//! What an OpenTelemetry collector is at its core: it takes OTLP over HTTP, decodes it with OpenTelemetry's own messages,
//! and remembers every span.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::StatusCode;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::ResourceSpans;
pub(crate) use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// A span as it arrived, identifiers as hexadecimal digits.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    /// `service.name` of the process that it comes from.
    pub(crate) service: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty for a root.
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) attributes: BTreeMap<String, String>,
    /// The traces and spans that it refers to.
    pub(crate) links: Vec<(String, String)>,
    pub(crate) failed: bool,
}

impl Span {
    /// An attribute as text; nothing when it is not there.
    pub(crate) fn attribute(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }
}

#[derive(Default)]
struct Received {
    spans: Vec<Span>,
    unreadable: usize,
}

/// The collector. When its test fails it tells what it has got.
pub(crate) struct Collector {
    pub(crate) endpoint: String,
    received: Arc<Mutex<Received>>,
    _server: AbortOnDropHandle<()>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let received = Arc::<Mutex<Received>>::default();
        let router = Router::new()
            .route("/v1/traces", post(take))
            .with_state(Arc::clone(&received));
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("the collector serves");
        });
        Self {
            endpoint: format!("http://{address}"),
            received,
            _server: AbortOnDropHandle::new(server),
        }
    }

    /// The spans of a trace so far.
    pub(crate) fn trace(&self, trace: &str) -> Vec<Span> {
        let received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(received.unreadable, 0, "everything is OTLP");
        let of_it = received.spans.iter().filter(|span| span.trace == trace);
        of_it.cloned().collect()
    }

    /// All spans so far.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        received.spans.clone()
    }
}

impl Drop for Collector {
    #[expect(
        clippy::print_stderr,
        reason = "it tells the reader of the failure what there was"
    )]
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let mut told = String::new();
        for span in self.spans() {
            let Span {
                service,
                trace,
                id,
                parent,
                name,
                attributes,
                ..
            } = span;
            let _ = writeln!(
                told,
                "{trace} {parent:16} > {id} {service}: {name} {attributes:?}"
            );
        }
        eprintln!("the spans that arrived:\n{told}");
    }
}

async fn take(State(received): State<Arc<Mutex<Received>>>, body: Bytes) -> StatusCode {
    let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(request) = ExportTraceServiceRequest::decode(body) else {
        received.unreadable += 1;
        return StatusCode::BAD_REQUEST;
    };
    for resource in request.resource_spans {
        received.spans.extend(spans(resource));
    }
    StatusCode::OK
}

fn spans(resource: ResourceSpans) -> Vec<Span> {
    let about = attributes(
        resource
            .resource
            .map(|resource| resource.attributes)
            .unwrap_or_default(),
    );
    let service = about.get("service.name").cloned().unwrap_or_default();
    let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
    spans
        .map(|span| Span {
            service: service.clone(),
            kind: span.kind(),
            trace: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
            failed: span.status.as_ref().is_some_and(|status| status.code == 2),
            name: span.name,
            attributes: attributes(span.attributes),
            links: span
                .links
                .iter()
                .map(|link| (hex(&link.trace_id), hex(&link.span_id)))
                .collect(),
        })
        .collect()
}

fn attributes(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes
        .into_iter()
        .map(|attribute| (attribute.key, text(attribute.value)))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

//! What an OpenTelemetry collector is at its core: it takes OTLP over HTTP, decodes it with OpenTelemetry's own messages,
//! and remembers every span, line and last value.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::StatusCode;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::ResourceLogs;
use opentelemetry_proto::tonic::metrics::v1::{Metric, ResourceMetrics, metric::Data, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::ResourceSpans;
pub(crate) use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
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

/// A log line as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// `service.name` of the process that it comes from.
    pub(crate) service: String,
    /// Empty for a line outside of any span.
    pub(crate) trace: String,
    pub(crate) span: String,
    pub(crate) level: String,
    pub(crate) text: String,
    pub(crate) attributes: BTreeMap<String, String>,
}

#[derive(Default)]
struct Received {
    spans: Vec<Span>,
    lines: Vec<Line>,
    /// The last sums over all labels by service and name: of counters what was counted, of histograms how often.
    sums: BTreeMap<(String, String), f64>,
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
            .route("/v1/traces", post(take::<ExportTraceServiceRequest>))
            .route("/v1/logs", post(take::<ExportLogsServiceRequest>))
            .route("/v1/metrics", post(take::<ExportMetricsServiceRequest>))
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

    /// All log lines so far.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        received.lines.clone()
    }

    /// What a counter or histogram of a service has counted, if it has come.
    pub(crate) fn sum(&self, service: &str, name: &str) -> Option<f64> {
        let received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (service.to_owned(), name.to_owned());
        received.sums.get(&key).copied()
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

/// What a collector is sent at one of its paths.
trait Export: prost::Message + Default {
    fn arrive(self, received: &mut Received);
}

impl Export for ExportTraceServiceRequest {
    fn arrive(self, received: &mut Received) {
        received
            .spans
            .extend(self.resource_spans.into_iter().flat_map(spans));
    }
}

impl Export for ExportLogsServiceRequest {
    fn arrive(self, received: &mut Received) {
        received
            .lines
            .extend(self.resource_logs.into_iter().flat_map(lines));
    }
}

impl Export for ExportMetricsServiceRequest {
    fn arrive(self, received: &mut Received) {
        received
            .sums
            .extend(self.resource_metrics.into_iter().flat_map(sums));
    }
}

async fn take<E: Export>(State(received): State<Arc<Mutex<Received>>>, body: Bytes) -> StatusCode {
    let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(export) = E::decode(body) else {
        received.unreadable += 1;
        return StatusCode::BAD_REQUEST;
    };
    export.arrive(&mut received);
    StatusCode::OK
}

/// `service.name` of a process.
fn service(resource: Option<Resource>) -> String {
    let mut about = attributes(resource.map(|resource| resource.attributes).unwrap_or_default());
    about.remove("service.name").unwrap_or_default()
}

fn spans(resource: ResourceSpans) -> Vec<Span> {
    let service = service(resource.resource);
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

fn lines(resource: ResourceLogs) -> Vec<Line> {
    let service = service(resource.resource);
    let lines = resource
        .scope_logs
        .into_iter()
        .flat_map(|scope| scope.log_records);
    lines
        .map(|line| Line {
            service: service.clone(),
            trace: hex(&line.trace_id),
            span: hex(&line.span_id),
            level: line.severity_text,
            text: text(line.body),
            attributes: attributes(line.attributes),
        })
        .collect()
}

fn sums(resource: ResourceMetrics) -> Vec<((String, String), f64)> {
    let service = service(resource.resource);
    let metrics = resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
    metrics
        .filter_map(|metric| {
            let sum = sum(&metric)?;
            Some(((service.clone(), metric.name), sum))
        })
        .collect()
}

fn sum(metric: &Metric) -> Option<f64> {
    match metric.data.as_ref()? {
        Data::Sum(sum) => {
            let values = sum.data_points.iter().map(|point| match point.value {
                Some(number_data_point::Value::AsDouble(value)) => value,
                _ => 0.0,
            });
            Some(values.sum())
        }
        Data::Histogram(histogram) => {
            let observed = histogram.data_points.iter().map(|point| point.count);
            Some(observed.sum::<u64>() as f64)
        }
        _ => None,
    }
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

fn attributes(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
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

//! Metrics, every few seconds.
//!
//! What is sent is what `/metrics` shows at that moment, so that both tell the same. Counters and histograms are sums since the
//! process began: what one request did not bring, the next one does.

use std::env;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request};
use opentelemetry_http::{HttpClient as _, HttpError, ResponseExt as _};
use opentelemetry_otlp::{OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_METRICS_HEADERS};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use percent_encoding::percent_decode_str;
use prost::Message as _;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::client::OnRuntime;
use super::series::{self, Since};
use super::{SCOPE, Signal, resource};
use crate::{Error, Settings, recorder};

/// Sends metrics until it is told to end, or dropped.
#[derive(Debug)]
pub(crate) struct Points {
    end: oneshot::Sender<()>,
    sending: JoinHandle<()>,
}

impl Points {
    /// Sends them to `endpoint` now and then `every` so often.
    pub(crate) fn send(settings: &Settings, endpoint: &str, every: Duration) -> Result<Self, Error> {
        let exporter = Exporter {
            client: OnRuntime::new(Signal::Metrics)?,
            address: Signal::Metrics.address(endpoint)?,
            headers: headers(),
            resource: Resource {
                attributes: ResourceAttributesWithSchema::from(&resource(settings))
                    .attributes
                    .0,
                ..Resource::default()
            },
            began: now(),
        };
        let (end, ended) = oneshot::channel();
        Ok(Self {
            end,
            sending: tokio::spawn(exporter.run(every, ended)),
        })
    }

    /// Sends them a last time. Takes no longer than `bound`.
    pub(crate) async fn end(self, bound: Duration) {
        // It has ended already if it panicked.
        let _ = self.end.send(());
        let abort = self.sending.abort_handle();
        if tokio::time::timeout(bound, self.sending).await.is_err() {
            abort.abort();
            let error = "it was not delivered in time";
            tracing::warn!(
                signal = Signal::Metrics.name(),
                error,
                "the last telemetry is lost"
            );
        }
    }
}

struct Exporter {
    client: OnRuntime,
    address: String,
    headers: HeaderMap,
    resource: Resource,
    /// In nanoseconds since 1970.
    began: u64,
}

impl Exporter {
    async fn run(self, every: Duration, mut ended: oneshot::Receiver<()>) {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_last = tokio::select! {
                _ = ticks.tick() => false,
                ended = &mut ended => match ended {
                    Ok(()) => true,
                    Err(_) => return,
                },
            };
            self.export().await;
            if is_last {
                return;
            }
        }
    }

    async fn export(&self) {
        let since = Since {
            began: self.began,
            now: now(),
        };
        let metrics = series::of(&recorder::render_metrics(), since);
        let points = metrics.iter().map(series::points).sum();
        let scope = ScopeMetrics {
            scope: Some(InstrumentationScope {
                name: SCOPE.to_owned(),
                ..InstrumentationScope::default()
            }),
            metrics,
            ..ScopeMetrics::default()
        };
        let all = ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource.clone()),
                scope_metrics: vec![scope],
                ..ResourceMetrics::default()
            }],
        };
        if self.post(all.encode_to_vec()).await.is_err() {
            Signal::Metrics.count_lost(points);
        }
    }

    /// The client tells of a failure.
    async fn post(&self, body: Vec<u8>) -> Result<(), HttpError> {
        let mut request = Request::post(&self.address)
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(Bytes::from(body))?;
        request.headers_mut().extend(self.headers.clone());
        self.client.send_bytes(request).await?.error_for_status()?;
        Ok(())
    }
}

/// What OpenTelemetry's own exporters read as well: most often the key of the collector.
fn headers() -> HeaderMap {
    let listed =
        env::var(OTEL_EXPORTER_OTLP_METRICS_HEADERS).or_else(|_| env::var(OTEL_EXPORTER_OTLP_HEADERS));
    headers_in(&listed.unwrap_or_default())
}

/// Headers as `name=value,name=value`, values percent-encoded. What is none is passed over, as those exporters do.
fn headers_in(listed: &str) -> HeaderMap {
    let header = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name.trim()).ok()?, value))
    };
    listed.split(',').filter_map(header).collect()
}

fn now() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_the_conventions_write_them() {
        let headers = headers_in("api-key=a%20b, x-tenant = 7,nonsense,bad name=1,=2");
        assert_eq!(headers.len(), 2, "{headers:?}");
        assert_eq!(headers["api-key"], "a b");
        assert_eq!(headers["x-tenant"], "7");
        assert!(headers_in("").is_empty());
    }
}

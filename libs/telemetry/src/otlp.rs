//! Traces to an OpenTelemetry collector: OTLP, protobuf over HTTP, in batches.
//!
//! It deliberately has no queue of its own and no retry: when the collector is away, spans are lost and one log line says so. Work is
//! never held up for its trace.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, Response};
use opentelemetry::KeyValue;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use crate::{Error, Settings};

const TIMEOUT: Duration = Duration::from_secs(5);

/// The source of tracers, whose spans go to `endpoint`.
pub(crate) fn provider(settings: &Settings, endpoint: &str) -> Result<SdkTracerProvider, Error> {
    let endpoint = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(OnRuntime::new()?)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(&endpoint)
        .with_timeout(TIMEOUT)
        .build()
        .map_err(|source| Error::Exporter { endpoint, source })?;
    let resource = Resource::builder()
        .with_service_name(settings.service_name.clone())
        .with_attribute(KeyValue::new("service.instance.id", settings.instance.clone()))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.sample_ratio)));
    Ok(SdkTracerProvider::builder()
        .with_resource(resource)
        .with_sampler(sampler)
        .with_batch_exporter(exporter)
        .build())
}

/// An HTTP client for the batch processor, which exports from a thread of its own where no Tokio runtime is: the request runs on the
/// runtime that set telemetry up, and the thread waits for it.
#[derive(Debug)]
struct OnRuntime {
    client: reqwest::Client,
    runtime: Handle,
    failing: AtomicBool,
}

impl OnRuntime {
    fn new() -> Result<Self, Error> {
        lifecycle::crypto::install_default_provider();
        let client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(Error::Client)?;
        Ok(Self {
            client,
            runtime: Handle::current(),
            failing: AtomicBool::new(false),
        })
    }

    /// Logs the first failure of a row and its end, rather than one line every few seconds.
    fn note(&self, failure: Option<&HttpError>) {
        let failed_before = self.failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(error) if !failed_before => {
                tracing::warn!(
                    error = error.as_ref(),
                    "traces cannot be delivered and are lost until they can"
                );
            }
            None if failed_before => tracing::info!("traces are delivered again"),
            _ => {}
        }
    }
}

#[async_trait::async_trait]
impl HttpClient for OnRuntime {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        // Without a subscriber, so that sending spans makes no spans.
        let sending =
            async move { client.send_bytes(request).await }.with_subscriber(NoSubscriber::default());
        let answer = match self.runtime.spawn(sending).await {
            Ok(answer) => answer,
            Err(runtime_stopped) => Err(runtime_stopped.into()),
        };
        self.note(answer.as_ref().err());
        answer
    }
}

//! Spans, in batches.
//!
//! It deliberately decides nothing about what has a span; that is in `traces`.

use std::time::Duration;

use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};

use super::client::{OnRuntime, TIMEOUT};
use super::{Signal, resource};
use crate::{Error, Settings};

/// The source of tracers, whose spans go to `endpoint`.
pub(crate) fn provider(settings: &Settings, endpoint: &str) -> Result<SdkTracerProvider, Error> {
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_http_client(OnRuntime::new(Signal::Traces)?)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(Signal::Traces.address(endpoint)?)
        .with_timeout(TIMEOUT)
        .build()
        .map_err(Error::Exporter)?;
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.sample_ratio)));
    Ok(SdkTracerProvider::builder()
        .with_resource(resource(settings))
        .with_sampler(sampler)
        .with_batch_exporter(Counted(exporter))
        .build())
}

/// An exporter that counts the spans of batches that the collector did not take.
#[derive(Debug)]
struct Counted<E>(E);

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let exported = self.0.export(batch).await;
        if exported.is_err() {
            Signal::Traces.count_lost(spans);
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

//! What goes to an OpenTelemetry collector: OTLP, protobuf over HTTP.
//!
//! It deliberately keeps nothing for a collector that is away: what it cannot be given is lost and counted, and one log line says
//! so. Work never waits for its telemetry.

mod client;
pub(crate) mod lines;
mod points;
mod series;
pub(crate) mod spans;

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;

use crate::{Metric, Settings};

pub(crate) use points::Points;

/// Whose telemetry it is.
pub(crate) const SCOPE: &str = "postrider";

/// What a collector takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    Traces,
    Metrics,
    Logs,
}

impl Signal {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }

    /// Where a collector takes it.
    fn address(self, endpoint: &str) -> String {
        format!("{}/v1/{}", endpoint.trim_end_matches('/'), self.name())
    }

    /// Counts what the collector was not given.
    fn count_lost(self, lost: usize) {
        let lost = u64::try_from(lost).unwrap_or(u64::MAX);
        Metric::TelemetryLost.increment_with(&[("signal", self.name())], lost);
    }
}

/// Who tells it. `OTEL_RESOURCE_ATTRIBUTES` adds to it.
fn resource(settings: &Settings) -> Resource {
    Resource::builder()
        .with_service_name(settings.service_name.clone())
        .with_attribute(KeyValue::new("service.instance.id", settings.instance.clone()))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build()
}

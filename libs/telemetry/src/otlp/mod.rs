//! What goes to an OpenTelemetry collector: OTLP, protobuf over HTTP.
//!
//! It deliberately keeps nothing for a collector that is away: what it cannot be given is lost and counted, and one log line says
//! so. Work never waits for its telemetry.

mod client;
pub(crate) mod lines;
mod points;
mod series;
pub(crate) mod spans;

use axum::http::Uri;
use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;

use crate::{Error, Metric, Settings};

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
    fn address(self, endpoint: &str) -> Result<String, Error> {
        let address = format!("{}/v1/{}", endpoint.trim_end_matches('/'), self.name());
        // The exporters look at it as well, but show it in their errors, although it may hold credentials.
        address.parse::<Uri>().map_err(Error::Address)?;
        Ok(address)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_no_url_is_refused_without_being_shown() {
        let error = Signal::Traces
            .address("http://user:hunter2@[collector")
            .unwrap_err();
        let shown = format!("{} {error:?}", lifecycle::error_chain(&error));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

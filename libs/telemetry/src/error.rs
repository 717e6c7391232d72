//! Why telemetry could not be set up.

use axum::http::uri::InvalidUri;
use metrics_exporter_prometheus::BuildError;
use opentelemetry_otlp::ExporterBuildError;
use tracing_subscriber::filter::ParseError;

/// Why telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log filter is not a list of directives.
    #[error("log filter {filter:?} is not valid")]
    Filter {
        /// The filter as it was given.
        filter: String,
        /// What is wrong with it.
        #[source]
        source: ParseError,
    },
    /// The HTTP client that talks to the collector cannot be built.
    #[error("failed to build the HTTP client for the collector")]
    Client(#[source] reqwest::Error),
    /// The address of the collector is none. It is not shown, since it may hold credentials.
    #[error("the address of the collector is not a URL")]
    Address(#[source] InvalidUri),
    /// An exporter to the collector cannot be built.
    #[error("failed to build the exporter to the collector")]
    Exporter(#[source] ExporterBuildError),
    /// A histogram of the catalogue has no buckets.
    #[error("failed to set the buckets of a histogram")]
    Buckets(#[source] BuildError),
    /// Something else in the process has installed a metrics recorder, which would get all samples.
    #[error("another metrics recorder is installed in this process")]
    OtherRecorder,
}

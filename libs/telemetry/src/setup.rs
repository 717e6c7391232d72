//! Setting everything up at the start of a process, and flushing it at the end.
//!
//! It deliberately reads no environment and no file; the caller has done that.

use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::task::JoinHandle;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::set_global_default;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer as _, Registry};

use crate::otlp::{Points, SCOPE, Signal};
use crate::{Error, logs, otlp, recorder};

/// How often the recorder folds observations into its buckets. Until then it keeps each, in 16 bytes: with 7,000 deliveries a second, of which
/// each has three, that is a third of a megabyte a second.
const UPKEEP: Duration = Duration::from_secs(1);

/// The broker's client has a span for the life of each connection, which belongs to no request's trace.
const BROKER_CLIENT: &str = "lapin";

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Human,
    /// One JSON object per line.
    Json,
}

/// What telemetry needs to know. Has no `Debug`: the URL may hold credentials.
#[derive(Clone)]
pub struct Settings {
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which log lines are written, as `tracing` directives.
    pub log_filter: String,
    /// Base URL of an OTLP/HTTP collector; `None` switches traces off, at no cost, and the two that follow.
    pub otlp_endpoint: Option<String>,
    /// Whether the collector gets the log lines too.
    pub otlp_logs: bool,
    /// How often the collector gets the metrics too; `None` for never.
    pub otlp_metrics: Option<Duration>,
    /// Share of new traces that is recorded, 0 to 1. A trace that a caller began follows the caller's decision.
    pub sample_ratio: f64,
    /// The service as the collector knows it, for example `dispatcher`.
    pub service_name: String,
    /// What tells this process from other replicas, for example host name and process id.
    pub instance: String,
}

/// Sets metrics, logs and traces up for the whole process.
///
/// A process has one set of them. When it has been set up before, as in tests, the earlier one stays, and the guard returned here
/// flushes nothing.
///
/// # Panics
/// Outside a Tokio runtime.
pub fn init(settings: &Settings) -> Result<Guard, Error> {
    let handle = recorder::install()?;
    let upkeep = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(UPKEEP);
        loop {
            ticks.tick().await;
            handle.run_upkeep();
        }
    });
    let mut guard = Guard {
        upkeep,
        traces: None,
        logs: None,
        metrics: None,
    };
    let endpoint = settings.otlp_endpoint.as_deref();
    let traces = endpoint
        .map(|endpoint| otlp::spans::provider(settings, endpoint))
        .transpose()?;
    let shipped = endpoint
        .filter(|_| settings.otlp_logs)
        .map(|endpoint| otlp::lines::provider(settings, endpoint))
        .transpose()?;
    // The log filter must not thin traces out, so each layer has a filter of its own.
    let tracing_layer = traces.as_ref().map(|traces| {
        // Threads, files and lines of our own sources tell a reader nothing and would be in every span.
        tracing_opentelemetry::layer()
            .with_tracer(traces.tracer(SCOPE))
            .with_threads(false)
            .with_location(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(|about| !about.target().starts_with(BROKER_CLIENT)))
            .with_filter(LevelFilter::INFO)
    });
    let lines = logs::to_stderr::<Registry>(settings.log_format, &settings.log_filter)?;
    let filter = logs::filter(&settings.log_filter)?;
    let shipped_layer = shipped
        .as_ref()
        .map(|shipped| otlp::lines::layer(shipped).with_filter(filter));
    let all = Registry::default()
        .with(lines)
        .with(tracing_layer)
        .with(shipped_layer);
    if set_global_default(all).is_ok() {
        if let Some(traces) = &traces {
            crate::traces::install(traces.tracer(SCOPE));
        }
        guard.traces = traces;
        guard.logs = shipped;
        guard.metrics = endpoint
            .zip(settings.otlp_metrics)
            .map(|(endpoint, every)| Points::send(settings, endpoint, every))
            .transpose()?;
    }
    Ok(guard)
}

/// Keeps telemetry going; [`Guard::shutdown`] ends it. Dropping it without that loses what the collector was to get of the last
/// seconds.
#[derive(Debug)]
#[must_use]
pub struct Guard {
    upkeep: JoinHandle<()>,
    traces: Option<SdkTracerProvider>,
    logs: Option<SdkLoggerProvider>,
    metrics: Option<Points>,
}

impl Guard {
    /// Delivers what waits for the collector, for `bound` at most. A collector that is away must not keep a process from ending, so
    /// a failure is only logged.
    pub async fn shutdown(mut self, bound: Duration) {
        let (traces, logs, metrics) = (self.traces.take(), self.logs.take(), self.metrics.take());
        tokio::join!(
            async {
                if let Some(traces) = traces {
                    flush(Signal::Traces, bound, move || traces.shutdown_with_timeout(bound)).await;
                }
            },
            async {
                if let Some(logs) = logs {
                    flush(Signal::Logs, bound, move || logs.shutdown_with_timeout(bound)).await;
                }
            },
            async {
                if let Some(metrics) = metrics {
                    metrics.end(bound).await;
                }
            },
        );
    }
}

async fn flush(signal: Signal, bound: Duration, flushing: impl FnOnce() -> OTelSdkResult + Send + 'static) {
    // The flush blocks its thread, while the requests it makes need the runtime's.
    let flushed = tokio::task::spawn_blocking(flushing);
    let error = match tokio::time::timeout(bound, flushed).await {
        Ok(Ok(Ok(()))) => return,
        Ok(Ok(Err(error))) => lifecycle::error_chain(&error),
        Ok(Err(_)) | Err(_) => "it was not delivered in time".to_owned(),
    };
    tracing::warn!(signal = signal.name(), error, "the last telemetry is lost");
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.upkeep.abort();
    }
}

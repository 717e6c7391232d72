//! The behaviour of metrics, traces, propagation and the admin endpoints.
//!
//! Logs, metrics and traces belong to the process, so the tests share one set-up: [`telemetry`] makes it on first use.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod admin;
mod alerts;
mod collector;
mod dashboard;
mod documents;
mod http;
mod metrics;
mod promql;
mod traceparent;
mod traces;

use std::sync::OnceLock;
use std::time::Duration;

use telemetry::{Guard, LogFormat, Settings};
use tokio::runtime::Runtime;

/// Longer than anything here takes, so that only what never happens runs into it.
const SOON: Duration = Duration::from_secs(10);

/// The one set-up, which never ends: there would be no traces for the tests that come after. Its runtime must outlive every
/// test.
struct Shared {
    runtime: Runtime,
    _guard: Guard,
}

/// No collector listens there. Where spans get to is the matter of the other binary.
const NOWHERE: &str = "http://127.0.0.1:1";

fn settings(otlp_endpoint: Option<String>) -> Settings {
    Settings {
        log_format: LogFormat::Human,
        log_filter: "off".to_owned(),
        otlp_endpoint,
        otlp_logs: true,
        otlp_metrics: Some(Duration::from_millis(50)),
        sample_ratio: 1.0,
        service_name: "dispatcher".to_owned(),
        instance: "host-1".to_owned(),
    }
}

fn shared() -> &'static Shared {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    SHARED.get_or_init(|| {
        let runtime = Runtime::new().unwrap();
        let settings = settings(Some(NOWHERE.to_owned()));
        let guard = runtime.block_on(async { telemetry::init(&settings).unwrap() });
        Shared {
            runtime,
            _guard: guard,
        }
    })
}

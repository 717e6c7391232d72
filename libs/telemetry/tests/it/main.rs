//! The behaviour of metrics, traces, propagation and the admin endpoints.
//!
//! Logs, metrics and traces belong to the process, so the tests share one set-up: [`telemetry`] makes it on first use.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod admin;
mod documents;
mod http;
mod metrics;
mod traceparent;
mod traces;

use std::sync::OnceLock;
use std::time::Duration;

use telemetry::{Guard, LogFormat, Settings};
use tokio::runtime::Runtime;

use crate::http::Collector;

/// Longer than anything here takes, so that only what never happens runs into it.
const SOON: Duration = Duration::from_secs(10);

/// The one set-up, with the collector its traces go to. Its runtime must outlive every test, for the requests run on it.
struct Shared {
    runtime: Runtime,
    collector: Collector,
    guard: std::sync::Mutex<Option<Guard>>,
}

fn settings(otlp_endpoint: Option<String>) -> Settings {
    Settings {
        log_format: LogFormat::Human,
        log_filter: "off".to_owned(),
        otlp_endpoint,
        sample_ratio: 1.0,
        service_name: "dispatcher".to_owned(),
        instance: "host-1".to_owned(),
    }
}

fn shared() -> &'static Shared {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    SHARED.get_or_init(|| {
        let runtime = Runtime::new().unwrap();
        let (collector, guard) = runtime.block_on(async {
            let collector = Collector::start().await;
            let guard = telemetry::init(&settings(Some(collector.endpoint.clone()))).unwrap();
            (collector, guard)
        });
        Shared {
            runtime,
            collector,
            guard: std::sync::Mutex::new(Some(guard)),
        }
    })
}

//! Spans, log lines and metrics on their way to a collector, which the end of a process sends. That ends traces for the whole
//! process, so the test has one of its own.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod collector;

use std::time::{Duration, SystemTime};

use telemetry::traces::{self, Span, Statement};
use telemetry::{LogFormat, Metric, Settings, traceparent};
use tokio::runtime::Runtime;

use crate::collector::Collector;

/// Longer than anything here takes, so that only what never happens runs into it.
const SOON: Duration = Duration::from_secs(60);

fn settings(endpoint: String) -> Settings {
    Settings {
        log_format: LogFormat::Human,
        log_filter: "end=info".to_owned(),
        otlp_endpoint: Some(endpoint),
        otlp_logs: true,
        // The first ones go at once, and no others until the end.
        otlp_metrics: Some(SOON * 60),
        sample_ratio: 1.0,
        service_name: "dispatcher".to_owned(),
        instance: "host-1".to_owned(),
    }
}

/// The bytes of the trace id in a `traceparent`.
fn trace_id(traceparent: &str) -> Vec<u8> {
    (3..35)
        .step_by(2)
        .map(|at| u8::from_str_radix(&traceparent[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn what_waits_reaches_the_collector_when_the_process_ends() {
    let runtime = Runtime::new().unwrap();
    let (collector, guard) = runtime.block_on(async {
        let collector = Collector::start().await;
        let settings = settings(collector.endpoint.clone());
        (collector, telemetry::init(&settings).unwrap())
    });
    let span = tracing::info_span!("send to swrve", attempt = 1);
    let own = traceparent::of(&span).expect("traces are on");
    let linked = "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01";
    traceparent::link(&span, linked);
    span.in_scope(|| {
        tracing::debug!("no part of anything");
        tracing::info!(attempts = 2, "swrve has answered");
    });
    drop(span);
    let batch = batch_for_two_traces();
    Metric::PushPromoted.increment_with(&[("job", "of the last seconds")], 1);

    runtime.block_on(guard.shutdown(SOON));

    let spans = collector.with("/v1/traces", "send to swrve");
    assert!(spans.holds(&trace_id(&own)), "its trace id");
    assert!(spans.holds(&trace_id(linked)), "its link");
    for member in batch {
        assert!(
            collector
                .with("/v1/traces", "claim things")
                .holds(&trace_id(&member)),
            "the trace of {member}"
        );
    }
    let lines = collector.with("/v1/logs", "swrve has answered");
    assert!(lines.holds(&trace_id(&own)), "the trace of the line");
    assert!(lines.holds(b"attempts"), "its fields");
    let metrics = collector.with("/v1/metrics", "of the last seconds");
    assert!(metrics.holds(b"postrider_push_promoted_total"));
    for request in [spans, lines, metrics] {
        assert_eq!(request.headers["content-type"], "application/x-protobuf");
        assert!(
            request.holds(b"dispatcher") && request.holds(b"host-1"),
            "service and instance"
        );
    }
    assert!(!collector.has("no part of anything"));
}

/// A batch for two traces that are recorded and one that is not; returns those that have to know of it.
fn batch_for_two_traces() -> [String; 2] {
    const CLAIM: Statement = Statement {
        summary: "claim things",
        operation: "UPDATE",
        table: "things",
    };
    let message = |digit: &str, flags: &str| {
        let traceparent = format!("00-{}-c7ad6b7169203331-{flags}", digit.repeat(32));
        let span = traces::process("things", "7", Some(&traceparent));
        assert_eq!(span.is_recorded(), flags == "01", "{traceparent}");
        // What a log line about the same names.
        let trace = span.is_recorded().then(|| digit.repeat(32));
        assert_eq!(span.trace_id(), trace, "{traceparent}");
        span
    };
    let messages = [message("5", "00"), message("6", "01"), message("7", "01")];
    let members = messages.iter().filter_map(Span::context).collect();
    let batch = CLAIM.executed(members, SystemTime::now(), messages.len());
    let own = batch.traceparent().expect("it is recorded");
    let first = messages[1].traceparent().expect("it is recorded");
    assert_eq!(
        own[..36],
        first[..36],
        "it is in the trace of the first that is recorded"
    );
    [own, messages[2].traceparent().expect("it is recorded")]
}

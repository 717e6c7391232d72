//! Spans on their way to a collector, which the end of a process sends. That ends traces for the whole process, so the
//! test has one of its own.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod collector;

use std::time::{Duration, SystemTime};

use telemetry::traces::{self, Span, Statement};
use telemetry::{LogFormat, Settings, traceparent};
use tokio::runtime::Runtime;

use crate::collector::Collector;

/// Longer than anything here takes, so that only what never happens runs into it.
const SOON: Duration = Duration::from_secs(60);

fn settings(endpoint: String) -> Settings {
    Settings {
        log_format: LogFormat::Human,
        log_filter: "off".to_owned(),
        otlp_endpoint: Some(endpoint),
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

fn contains(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}

#[test]
fn span_reaches_the_collector_when_the_process_ends() {
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
    span.in_scope(|| tracing::debug!("no part of the trace"));
    drop(span);
    let batch = batch_for_two_traces();

    runtime.block_on(guard.shutdown(SOON));

    let received = collector.received();
    let (headers, body) = received
        .iter()
        .find(|(_, body)| contains(body, b"send to swrve"))
        .unwrap_or_else(|| panic!("the span is in none of {} requests", received.len()));
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert!(contains(body, &trace_id(&own)), "its trace id");
    assert!(contains(body, &trace_id(linked)), "its link");
    assert!(
        contains(body, b"dispatcher") && contains(body, b"host-1"),
        "service and instance"
    );
    assert!(!contains(body, b"no part of the trace"));
    let (_, body) = received
        .iter()
        .find(|(_, body)| contains(body, b"claim things"))
        .expect("the batch is sent too");
    for member in batch {
        assert!(contains(body, &trace_id(&member)), "the trace of {member}");
    }
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

//! Spans on their way to a collector.

use telemetry::traceparent;

use crate::{SOON, shared};

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
    let shared = shared();
    let span = tracing::info_span!("send to swrve", attempt = 1);
    let own = traceparent::of(&span).expect("traces are on");
    let linked = "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01";
    traceparent::link(&span, linked);
    span.in_scope(|| tracing::debug!("no part of the trace"));
    drop(span);

    let guard = shared
        .guard
        .lock()
        .unwrap()
        .take()
        .expect("only this test ends telemetry");
    shared.runtime.block_on(guard.shutdown(SOON));

    let received = shared.collector.received();
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
}

//! Spans of traces that are not recorded.

use std::time::SystemTime;

use telemetry::traces::{Context, Kind, Publishing, Span, Statement};

use crate::shared;

#[test]
fn what_belongs_to_no_recorded_trace_has_no_span() {
    shared();
    let unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    for traceparent in [None, Some(unsampled), Some("nonsense"), Some("")] {
        let mut span = Span::begin(Kind::Client, ("send", "things"), traceparent);
        span.set("postrider.attempt", 1);
        span.fail("timeout");
        assert!(!span.is_recorded(), "{traceparent:?}");
        assert_eq!(
            (span.context(), span.traceparent(), span.trace_id()),
            (None, None, None)
        );
        assert!(!span.child(Kind::Client, "POST").is_recorded());
        assert!(!Span::under_current(Kind::Internal, ("send", "things")).is_recorded());
        let statement = Statement {
            summary: "claim things",
            operation: "UPDATE",
            table: "things",
        };
        let members = Context::recorded(traceparent).into_iter().collect();
        assert!(!statement.executed(members, SystemTime::now(), 1).is_recorded());
    }
}

#[test]
fn message_carries_on_what_came_in_when_its_trace_is_not_recorded() {
    shared();
    let unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00".to_owned();
    let mut publishing = Publishing::to("things");
    assert_eq!(publishing.begin("1", None), None);
    assert_eq!(publishing.begin("2", Some(unsampled.clone())), Some(unsampled));
    publishing.end(|_| Some("rejected"));
}

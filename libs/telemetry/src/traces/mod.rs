//! Spans of work that is done for a request after its answer, in other tasks, processes and minutes.
//!
//! The request's own span is `tracing`'s (see `http-api`); everything after it is recorded here, because it has to begin
//! and end at times that are known only later, to name as its parent what a row or a message says, and to cost nothing
//! when its trace is not recorded. What a span means is told by the code that makes it, with OpenTelemetry's names.
//!
//! It deliberately begins no trace: work without a `traceparent`, or with one that is not sampled, has no spans. So the
//! decision of the first process holds in all of them, and one look at the last byte of a text is all that the rest pays.

mod publishing;
mod span;
mod statement;

use std::sync::OnceLock;

use opentelemetry_sdk::trace::SdkTracer;

pub use publishing::Publishing;
pub use span::{Context, Kind, Span};
pub use statement::Statement;

static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Makes this process record spans.
pub(crate) fn install(tracer: SdkTracer) {
    // A process sets its traces up once; see `crate::init`.
    let _ = TRACER.set(tracer);
}

fn tracer() -> Option<&'static SdkTracer> {
    TRACER.get()
}

/// Whether this process records spans at all.
pub fn are_on() -> bool {
    tracer().is_some()
}

/// The span of a message's time with its consumer, which goes on with the trace of the message.
pub fn process(queue: &'static str, id: impl std::fmt::Display, traceparent: Option<&str>) -> Span {
    let mut span = Span::begin(Kind::Consumer, ("process", queue), traceparent);
    if span.is_recorded() {
        message(&mut span, ("process", queue), &id);
    }
    span
}

/// What OpenTelemetry's conventions want to be told of a message.
fn message(span: &mut Span, (operation, queue): (&'static str, &'static str), id: &dyn std::fmt::Display) {
    span.set("messaging.system", "rabbitmq");
    span.set("messaging.operation.name", operation);
    let kind = if operation == "publish" { "send" } else { operation };
    span.set("messaging.operation.type", kind);
    span.set("messaging.destination.name", queue);
    span.set("messaging.message.id", id.to_string());
}

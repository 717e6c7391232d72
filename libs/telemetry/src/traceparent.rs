//! The W3C `traceparent`: how a trace goes on through HTTP headers, messages and rows.
//!
//! It deliberately handles text only. When traces are off nothing is created here, and an inbound `traceparent` is still passed on
//! as the text it came as.

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Length of version 00: `00-<32 hex>-<16 hex>-<2 hex>`.
const LENGTH: usize = 55;
/// Longest text that is taken. A later version may append fields; what is longer than this no message carries on
/// (`broker::envelope`), so that it would be stored for nothing, with every row of the request.
const MAX_LENGTH: usize = 128;

/// The current span as `traceparent`; `None` when traces are off or no span is entered.
pub fn current() -> Option<String> {
    of(&Span::current())
}

/// A span as `traceparent`; `None` when traces are off or the span is disabled.
pub fn of(span: &Span) -> Option<String> {
    context_of(span).map(|context| format(&context))
}

pub(crate) fn context_of(span: &Span) -> Option<SpanContext> {
    let context = span.context();
    let context = context.span().span_context().clone();
    context.is_valid().then_some(context)
}

pub(crate) fn format(context: &SpanContext) -> String {
    format!(
        "00-{}-{}-{:02x}",
        context.trace_id(),
        context.span_id(),
        context.trace_flags().to_u8()
    )
}

/// Makes the sender of a `traceparent` the parent of a span that has not been entered yet. A text that is no valid `traceparent`,
/// or a span that has begun already, leaves the span as it is: a broken header must not break the request.
pub fn set_parent(span: &Span, traceparent: &str) {
    if let Some(parent) = parse(traceparent) {
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
}

/// Notes in a span that it also works for the sender of a `traceparent`, as a batch does for many. An invalid text is left out.
pub fn link(span: &Span, traceparent: &str) {
    if let Some(other) = parse(traceparent) {
        span.add_link(other);
    }
}

/// Whether a text is a valid `traceparent`, so that it is worth storing.
pub fn is_valid(traceparent: &str) -> bool {
    parse(traceparent).is_some()
}

/// Whether the trace of a valid `traceparent` is recorded. Cheap: it looks at one byte.
pub fn is_sampled(traceparent: &str) -> bool {
    let flags = traceparent.as_bytes().get(LENGTH - 1);
    flags.is_some_and(|digit| {
        char::from(*digit)
            .to_digit(16)
            .is_some_and(|flags| flags & 1 == 1)
    })
}

pub(crate) fn parse(text: &str) -> Option<SpanContext> {
    let (known, rest) = text.split_at_checked(LENGTH)?;
    let mut parts = known.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hexadecimal = |part: &str, length: usize| {
        part.len() == length
            && part
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let formed =
        hexadecimal(version, 2) && hexadecimal(trace, 32) && hexadecimal(span, 16) && hexadecimal(flags, 2);
    // A later version may append fields; version 00 ends here, and ff is forbidden.
    let ended = rest.is_empty() || (version != "00" && rest.starts_with('-'));
    if !formed || !ended || version == "ff" || text.len() > MAX_LENGTH {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        flags,
        true,
        TraceState::default(),
    );
    context.is_valid().then_some(context)
}

//! One span, or none at no cost.

use std::borrow::Cow;
use std::fmt;
use std::time::SystemTime;

use opentelemetry::trace::{
    Link, Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _,
};
use opentelemetry::{KeyValue, Value};

use super::tracer;
use crate::traceparent;

/// What a span is in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Work of our own.
    Internal,
    /// A message is handed to the broker.
    Producer,
    /// A message is worked on.
    Consumer,
    /// Another system is asked: Swrve, an endpoint, the database.
    Client,
}

/// A span's place in its trace, for those that refer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context(pub(super) SpanContext);

impl Context {
    /// The place that a `traceparent` names; `None` when spans are not recorded here, or not for this trace.
    pub fn recorded(traceparent: Option<&str>) -> Option<Self> {
        tracer()?;
        let traceparent = traceparent.filter(|text| traceparent::is_sampled(text))?;
        traceparent::parse(traceparent).map(Self)
    }

    /// The place of the current span of `tracing`; `None` when spans are not recorded here, or not for its trace.
    pub fn current() -> Option<Self> {
        tracer()?;
        let context = traceparent::context_of(&tracing::Span::current())?;
        context.is_sampled().then_some(Self(context))
    }

    /// As text, for what is stored.
    pub fn traceparent(&self) -> String {
        traceparent::format(&self.0)
    }
}

/// A span that ends when it is dropped. Most are none: those of traces that are not recorded.
#[derive(Default)]
pub struct Span(Option<Box<opentelemetry_sdk::trace::Span>>);

impl Span {
    /// No span.
    pub fn none() -> Self {
        Self(None)
    }

    /// Begins a span, named after what is done with what, that goes on with the trace of a `traceparent`.
    pub fn begin(kind: Kind, name: (&'static str, &'static str), traceparent: Option<&str>) -> Self {
        match Context::recorded(traceparent) {
            Some(parent) => Self::build(kind, named(name), parent, Vec::new(), None),
            None => Self(None),
        }
    }

    /// Begins a span under the current one of `tracing`, named after what is done with what.
    pub fn under_current(kind: Kind, name: (&'static str, &'static str)) -> Self {
        match Context::current() {
            Some(parent) => Self::build(kind, named(name), parent, Vec::new(), None),
            None => Self(None),
        }
    }

    /// Begins a span under this one.
    pub fn child(&self, kind: Kind, name: &'static str) -> Self {
        match self.context() {
            Some(parent) => Self::build(kind, name.into(), parent, Vec::new(), None),
            None => Self(None),
        }
    }

    pub(super) fn build(
        kind: Kind,
        name: Cow<'static, str>,
        parent: Context,
        links: Vec<Link>,
        started: Option<SystemTime>,
    ) -> Self {
        let Some(tracer) = tracer() else {
            return Self(None);
        };
        let mut builder = SpanBuilder::from_name(name)
            .with_kind(match kind {
                Kind::Internal => SpanKind::Internal,
                Kind::Producer => SpanKind::Producer,
                Kind::Consumer => SpanKind::Consumer,
                Kind::Client => SpanKind::Client,
            })
            .with_links(links);
        builder.start_time = started;
        let parent = opentelemetry::Context::new().with_remote_span_context(parent.0);
        let span = tracer.build_with_context(builder, &parent);
        Self(span.is_recording().then(|| Box::new(span)))
    }

    /// Whether it is one.
    pub fn is_recorded(&self) -> bool {
        self.0.is_some()
    }

    /// Its place.
    pub fn context(&self) -> Option<Context> {
        Some(Context(self.0.as_ref()?.span_context().clone()))
    }

    /// Its place as text, for messages and requests.
    pub fn traceparent(&self) -> Option<String> {
        Some(traceparent::format(self.0.as_ref()?.span_context()))
    }

    /// Its trace, for a log line about what it works on.
    pub fn trace_id(&self) -> Option<String> {
        Some(self.0.as_ref()?.span_context().trace_id().to_string())
    }

    /// Notes something. Never a payload, a secret, or a text that a caller or a receiver chose.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new(key, value));
        }
    }

    /// Notes that the work failed, and in which of a few ways.
    pub fn fail(&mut self, kind: impl Into<Cow<'static, str>>) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new("error.type", Value::String(kind.into().into())));
            span.set_status(Status::error(""));
        }
    }

    /// Ends it at a time that has passed.
    pub fn end_at(mut self, at: SystemTime) {
        if let Some(span) = &mut self.0 {
            span.end_with_timestamp(at);
        }
    }

    /// Notes that another span has to do with it.
    pub fn link(&mut self, other: Context) {
        if let Some(span) = &mut self.0 {
            span.add_link(other.0, Vec::new());
        }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Span").field(&self.traceparent()).finish()
    }
}

fn named((done, with): (&'static str, &'static str)) -> Cow<'static, str> {
    format!("{done} {with}").into()
}

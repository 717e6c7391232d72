//! The spans of messages that are handed to the broker together.

use std::fmt::Display;

use super::message;
use super::span::{Kind, Span};

/// The spans of one call to a publisher: one for each message whose trace is recorded.
#[derive(Debug)]
pub struct Publishing {
    queue: &'static str,
    messages: usize,
    /// With the message's place among all.
    spans: Vec<(usize, Span)>,
}

impl Publishing {
    /// Nothing yet.
    pub fn to(queue: &'static str) -> Self {
        Self {
            queue,
            messages: 0,
            spans: Vec::new(),
        }
    }

    /// Begins with the next message, which goes on with the trace of `traceparent`. Returns what the message is to carry:
    /// the place of its own span, or what came in.
    pub fn begin(&mut self, id: impl Display, traceparent: Option<String>) -> Option<String> {
        let place = self.messages;
        self.messages += 1;
        let mut span = Span::begin(Kind::Producer, ("publish", self.queue), traceparent.as_deref());
        let Some(own) = span.traceparent() else {
            return traceparent;
        };
        message(&mut span, ("publish", self.queue), &id);
        self.spans.push((place, span));
        Some(own)
    }

    /// Notes by which job the messages came.
    pub fn note(&mut self, key: &'static str, value: &'static str) {
        for (_, span) in &mut self.spans {
            span.set(key, value);
        }
    }

    /// Ends all of them; `failure` tells why the message at a place is not known to be in the queue.
    pub fn end(self, failure: impl Fn(usize) -> Option<&'static str>) {
        for (place, mut span) in self.spans {
            if let Some(failure) = failure(place) {
                span.fail(failure);
            }
        }
    }
}

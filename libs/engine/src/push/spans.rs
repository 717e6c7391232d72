//! What the push lane shows of itself in traces: which spans there are, and what is noted in them.
//!
//! A message has one from its arrival until it is settled, under which everything else is: the claim, the request to
//! Swrve, the recording of its outcome. None of them holds a text that a caller or Swrve chose.

use broker::{Delivery, Queue};
use domain::push::{ErrorType, SendOutcome};
use http_client::PreparedPush;
use store::push::{ClaimedPush, Completion, Release};
use telemetry::traces::{self, Kind, Span, Statement};

use super::work::Work;
use crate::message::Message;

pub(crate) const CLAIM: Statement = Statement {
    summary: "claim pushes",
    operation: "UPDATE",
    table: "push_notifications",
};
pub(crate) const COMPLETE: Statement = Statement {
    summary: "complete pushes",
    operation: "UPDATE",
    table: "push_notifications",
};
pub(crate) const RELEASE: Statement = Statement {
    summary: "release pushes",
    operation: "UPDATE",
    table: "push_notifications",
};

/// The span of a message's time in this lane.
pub(crate) fn message(delivery: &Delivery) -> Span {
    let envelope = &delivery.envelope;
    let traceparent = envelope.traceparent.as_deref();
    traces::process(Queue::PushReady.name(), envelope.id, traceparent)
}

/// The span of a push that was claimed without a message, until its outcome is recorded.
pub(crate) fn unqueued(push: &ClaimedPush) -> Span {
    traces::process(
        Queue::PushReady.name(),
        push.id.uuid(),
        push.traceparent.as_deref(),
    )
}

/// The span of a request to Swrve, whose `traceparent` names it.
pub(crate) fn send(work: &Work, request: &mut PreparedPush) -> Span {
    let mut span = work.message.span.child(Kind::Client, "POST");
    let Some(traceparent) = span.traceparent() else {
        return span;
    };
    request.set_traceparent(&traceparent);
    span.set("http.request.method", "POST");
    if let Some((host, port)) = request.server() {
        span.set("server.address", host.to_owned());
        span.set("server.port", i64::from(port));
    }
    let push = &work.push;
    span.set("postrider.lane", "push");
    span.set("postrider.push.id", push.id.to_string());
    span.set("postrider.attempt", i64::from(push.attempts));
    if push.attempts > 1 {
        span.set("http.request.resend_count", i64::from(push.attempts) - 1);
    }
    span
}

/// Ends the span of a request with what came of it.
pub(crate) fn answered(mut span: Span, status: Option<u16>, outcome: &SendOutcome) {
    if let Some(status) = status {
        span.set("http.response.status_code", i64::from(status));
    }
    match outcome {
        SendOutcome::Delivered => {}
        SendOutcome::Refused { status, .. } if span.is_recorded() => span.fail(status.to_string()),
        SendOutcome::Refused { .. } => {}
        SendOutcome::Unreachable { .. } => span.fail("unreachable"),
        SendOutcome::PrototypeKeyMissing { .. } | SendOutcome::Internal { .. } => span.fail("internal"),
        SendOutcome::NotTried { .. } => span.fail("own_fault"),
    }
}

/// Notes how an attempt ended.
pub(crate) fn completed(message: &mut Message, completion: &Completion) {
    let span = &mut message.span;
    span.set("postrider.status", completion.status.as_str());
    match completion.classification.error_type {
        None => {}
        Some(ErrorType::Swrve) => span.fail("swrve"),
        Some(ErrorType::MessagePrototypeKey) => span.fail("message_prototype_key"),
        Some(ErrorType::Other) => span.fail("other"),
    }
}

/// Notes that there was no attempt.
pub(crate) fn released(message: &mut Message, release: &Release) {
    let why = if release.deferred_to.is_some() {
        "deferred"
    } else {
        "handed_back"
    };
    message.span.set("postrider.outcome", why);
}

/// Notes that there was nothing to attempt: an earlier claim has done it, or a later one will.
pub(crate) fn not_claimed(message: &mut Message) {
    message.span.set("postrider.outcome", "not_claimed");
}

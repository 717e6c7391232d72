//! What the reseller lane shows of itself in traces: which spans there are, and what is noted in them.
//!
//! A notification has one from the arrival of its message, or from its claim when none brought it, until its outcome is
//! recorded; under it are the claim, the request and the recording. None of them holds a text that a caller or an endpoint
//! chose, and of an endpoint's URL only the host: the rest often holds tokens.

use std::time::SystemTime;

use broker::Delivery;
use domain::notification::{DeliveryOutcome, FailureKind};
use http_client::Endpoint;
use store::webhook::{ClaimedNotification, DeliveryCompletion};
use telemetry::traces::{self, Context, Kind, Span, Statement};

use super::Lane;

pub(crate) const CLAIM: Statement = Statement {
    summary: "claim notifications",
    operation: "UPDATE",
    table: "notifications",
};
pub(crate) const COMPLETE: Statement = Statement {
    summary: "complete notifications",
    operation: "UPDATE",
    table: "notifications",
};

/// The span of a message's time in a lane.
pub(crate) fn message(lane: Lane, delivery: &Delivery) -> Span {
    let envelope = &delivery.envelope;
    traces::process(lane.queue().name(), envelope.id, envelope.traceparent.as_deref())
}

/// The same for a notification that no message brought.
pub(crate) fn backlog(claimed: &ClaimedNotification) -> Span {
    let mut span = Span::begin(
        Kind::Internal,
        ("process", "backlog"),
        claimed.traceparent.as_deref(),
    );
    if span.is_recorded() {
        span.set("postrider.notification.id", claimed.id.to_string());
    }
    span
}

/// What waited in the database was claimed, as it turns out afterwards.
pub(crate) fn fetched(claimed: &[ClaimedNotification], started: SystemTime) {
    let members = claimed
        .iter()
        .filter_map(|claimed| Context::recorded(claimed.traceparent.as_deref()))
        .collect();
    drop(CLAIM.executed(members, started, claimed.len()));
}

/// The span of an attempt, which its request's `traceparent` names.
pub(crate) fn attempt(parent: &Span, claimed: &ClaimedNotification, endpoint: Option<&Endpoint>) -> Span {
    let mut span = parent.child(Kind::Client, "POST");
    if !span.is_recorded() {
        return span;
    }
    let attempt = i64::from(claimed.attempts.total);
    span.set("http.request.method", "POST");
    if let Some(endpoint) = endpoint {
        span.set("server.address", endpoint.host().to_owned());
        span.set("server.port", i64::from(endpoint.port()));
    }
    span.set(
        "http.request.body.size",
        i64::try_from(claimed.body.len()).unwrap_or(i64::MAX),
    );
    if attempt > 1 {
        span.set("http.request.resend_count", attempt - 1);
    }
    let lane = if attempt > 1 { Lane::Retry } else { Lane::First };
    span.set("postrider.lane", lane.label());
    span.set("postrider.attempt", attempt);
    span.set("postrider.notification.id", claimed.id.to_string());
    span.set("postrider.subscription.id", claimed.subscription_id.to_string());
    span
}

/// Ends the span of an attempt with what came of it.
pub(crate) fn attempted(mut span: Span, outcome: &DeliveryOutcome) {
    if !span.is_recorded() {
        return;
    }
    match outcome {
        DeliveryOutcome::Answered { status, .. } => {
            span.set("http.response.status_code", i64::from(*status));
            if !(200..300).contains(status) {
                span.fail(status.to_string());
            }
        }
        DeliveryOutcome::Failed { kind, .. } => span.fail(name(*kind)),
    }
}

/// Notes how an attempt ended.
pub(crate) fn completed(span: &mut Span, completion: &DeliveryCompletion) {
    if span.is_recorded() {
        span.set("postrider.status", completion.status.as_str());
        if let Some(kind) = completion.classification.error_type {
            span.fail(kind.to_ascii_lowercase());
        }
    }
}

/// Notes that there was no attempt.
pub(crate) fn not_attempted(span: &mut Span, why: &'static str) {
    span.set("postrider.outcome", why);
}

fn name(kind: FailureKind) -> String {
    kind.as_str().to_ascii_lowercase()
}

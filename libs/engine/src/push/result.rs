//! From the outcome of a send to the completion that is stored.

use chrono::{DateTime, Utc};
use domain::lifecycle::{Attempts, transition};
use domain::push::{PushState, PushStatus, RetryPolicy};
use http_client::Reply;
use store::push::{ClaimedPush, Completion};

/// Decides how an attempt ends: the domain's transition function names the state, the retry policy the time.
pub(crate) fn complete(
    push: &ClaimedPush,
    reply: Reply,
    policy: &RetryPolicy,
    now: DateTime<Utc>,
) -> Completion {
    let classification = reply.outcome.classification();
    let attempts = Attempts {
        total: push.attempts,
        before_resend: push.replayed_after,
    };
    let state = transition(
        PushState::Sending,
        classification.event,
        attempts,
        &policy.rules(),
    )
    .expect("invariant: every classification has an event that a push being sent accepts");
    let status = state.status();
    Completion {
        id: push.id,
        lease_token: push.lease_token,
        status,
        next_attempt_at: (status == PushStatus::Retry).then(|| policy.next_attempt_at(now)),
        millis: i64::try_from(reply.elapsed.as_millis()).unwrap_or(i64::MAX),
        response_status: reply.status,
        classification,
    }
}

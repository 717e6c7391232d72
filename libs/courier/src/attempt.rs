//! One attempt: the request is made and signed, sent, and its outcome judged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use delivery::WebhookRequest;
use domain::notification::{DeliveryOutcome, NotificationState, NotificationStatus, RetryPolicy, transition};
use store::reseller::{ClaimedNotification, DeliveryCompletion};
use telemetry::traces::Span;

use crate::Tools;
use crate::claimer::HORIZON;
use crate::endpoints::Target;
use crate::request::{Content, ours, signed};
use crate::spans;

/// An attempt that is over.
pub(crate) struct Attempted {
    pub(crate) completion: DeliveryCompletion,
    pub(crate) subscription: uuid::Uuid,
    pub(crate) payload_bytes: usize,
    pub(crate) elapsed: Duration,
}

/// Makes the attempt that was claimed; it is over when this returns, however it ended. `None` when it was too late: the
/// claim could run out before the answer, and whoever rescues the notification sends it.
pub(crate) async fn make(
    tools: &Tools,
    policy: &RetryPolicy,
    mut claimed: ClaimedNotification,
    target: Option<Arc<Target>>,
    until: Instant,
    span: &Span,
) -> Option<Attempted> {
    if let Some(at) = claimed.send_at
        && let Ok(wait) = (at - tools.clock.now()).to_std()
    {
        // Never more than was agreed with the database, whatever the clock does meanwhile.
        tokio::time::sleep(wait.min(HORIZON)).await;
    }
    let timeout = target.as_ref().map_or(Duration::ZERO, |target| target.timeout);
    if Instant::now() + timeout > until {
        tracing::warn!(notification.id = %claimed.id, "the claim is too old for an attempt");
        return None;
    }
    let endpoint = target.as_ref().and_then(|target| target.endpoint.as_ref().ok());
    let span = spans::attempt(span, &claimed, endpoint);
    // The attempt's own place in the trace; of a trace that is not recorded, what came in.
    let traceparent = span.traceparent().or_else(|| claimed.traceparent.clone());
    let (started_at, started) = (tools.clock.now(), Instant::now());
    let payload_bytes = claimed.body.len();
    let (elapsed, outcome) = match request(&mut claimed, target, traceparent, started_at) {
        Ok(request) => {
            let reply = tools.client.send(request).await;
            (reply.elapsed, reply.outcome)
        }
        Err(outcome) => (started.elapsed(), outcome),
    };
    spans::attempted(span, &outcome);
    tracing::debug!(notification.id = %claimed.id, ?elapsed, "attempt ended");
    let strict = tools.config.reseller.retry.strict_client_errors;
    Some(Attempted {
        subscription: claimed.subscription_id,
        payload_bytes,
        elapsed,
        completion: complete(
            &claimed,
            outcome,
            policy,
            strict,
            (started_at, elapsed),
            tools.clock.now(),
        ),
    })
}

/// Takes the body out: nobody needs it afterwards, and it is the largest part.
fn request(
    claimed: &mut ClaimedNotification,
    target: Option<Arc<Target>>,
    traceparent: Option<String>,
    at: DateTime<Utc>,
) -> Result<WebhookRequest, DeliveryOutcome> {
    let target = target.ok_or_else(|| ours("the subscription is gone".to_owned()))?;
    let content = Content {
        body: Bytes::from(std::mem::take(&mut claimed.body)),
        id: &claimed.event_id,
        traceparent,
    };
    signed(content, &target, at)
}

fn complete(
    claimed: &ClaimedNotification,
    outcome: DeliveryOutcome,
    policy: &RetryPolicy,
    strict: bool,
    (started_at, elapsed): (DateTime<Utc>, Duration),
    now: DateTime<Utc>,
) -> DeliveryCompletion {
    let verdict = outcome.verdict(strict);
    let state = transition(
        NotificationState::Sending,
        verdict.event,
        claimed.attempts,
        policy,
    )
    .expect("invariant: every verdict is an event that a notification being sent accepts");
    let status = state.status();
    let next_attempt_at = (status == NotificationStatus::Retry).then(|| {
        policy.next_attempt_at(
            now,
            claimed.attempts.counted(),
            verdict.retry_after,
            rand::random(),
        )
    });
    DeliveryCompletion {
        id: claimed.id,
        lease_token: claimed.lease_token,
        status,
        next_attempt_at,
        started_at,
        millis: i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX),
        verdict,
    }
}

//! One attempt: the request is made and signed, sent, and its outcome classified.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use domain::lifecycle::transition;
use domain::notification::{
    Classification, ClientErrors, DeliveryOutcome, FailureKind, NotificationState, NotificationStatus,
    OutageDecision, RetryPolicy, Tried,
};
use http_client::WebhookRequest;
use store::webhook::{ClaimedNotification, DeliveryCompletion, NotificationRelease};
use telemetry::traces::Span;

use super::Tools;
use super::claimer::HORIZON;
use super::endpoints::Target;
use super::outages::Outages;
use super::request::{Content, signed};
use super::spans;

/// An attempt that is over.
#[derive(Clone)]
pub(crate) struct Attempted {
    pub(crate) completion: DeliveryCompletion,
    pub(crate) subscription: uuid::Uuid,
    pub(crate) event_type: String,
    /// From the event to the end of the attempt; none of what is sent because that was asked for later.
    pub(crate) delay: Option<Duration>,
    pub(crate) payload_bytes: usize,
    pub(crate) elapsed: Duration,
}

/// No attempt: the notification is to be handed back.
#[derive(Clone, Debug)]
pub(crate) struct NotMade {
    pub(crate) release: NotificationRelease,
    /// Why, in a word.
    pub(crate) why: &'static str,
    /// What this process lacks, when that is why.
    pub(crate) fault: Option<String>,
}

/// How long something is put off that could not be tried for want of something of our own, and up to as much again.
const POSTPONEMENT: TimeDelta = TimeDelta::seconds(5);

/// Makes the attempt that was claimed; it is over when this returns, however it ended. [`NotMade`] when nothing was sent: the
/// endpoint is not what was claimed, the claim could run out before the answer, or what is lacking is ours; and when it failed as most
/// others do, so that the fault is ours as well.
pub(crate) async fn make(
    tools: &Tools,
    outages: &Outages,
    policy: &RetryPolicy,
    mut claimed: ClaimedNotification,
    target: Option<Arc<Target>>,
    until: Instant,
    span: &Span,
) -> Result<Attempted, NotMade> {
    let release = NotificationRelease {
        id: claimed.id,
        lease_token: claimed.lease_token,
        postponed_to: None,
    };
    let hand_back = |why| NotMade {
        release,
        why,
        fault: None,
    };
    let Some(target) = target.filter(|target| target.is_of(&claimed)) else {
        return Err(hand_back("endpoint_changed"));
    };
    if let Some(at) = claimed.send_at
        && let Ok(wait) = (at - tools.clock.now()).to_std()
    {
        // Never more than was agreed with the database, whatever the clock does meanwhile.
        tokio::time::sleep(wait.min(HORIZON)).await;
    }
    if Instant::now() + target.timeout > until {
        let trace_id = span.trace_id();
        tracing::warn!(notification.id = %claimed.id, trace_id, "the claim is too old for an attempt");
        return Err(hand_back("too_late"));
    }
    let span = spans::attempt(span, &claimed, target.endpoint.as_ref().ok());
    // The attempt's own place in the trace; of a trace that is not recorded, what came in.
    let traceparent = span.traceparent().or_else(|| claimed.traceparent.clone());
    let (started_at, started) = (tools.clock.now(), Instant::now());
    let payload_bytes = claimed.body.len();
    let mut not_made = hand_back("own_fault");
    let (elapsed, outcome) = match request(&mut claimed, &target, traceparent, started_at) {
        Ok(request) => {
            let reply = tools.client.send(request).await;
            (reply.elapsed, reply.outcome)
        }
        Err(outcome) => (started.elapsed(), outcome),
    };
    spans::attempted(span, &outcome);
    tracing::debug!(notification.id = %claimed.id, ?elapsed, "attempt ended");
    if let DeliveryOutcome::Failed {
        kind: FailureKind::Local,
        message,
    } = outcome
    {
        let pause =
            POSTPONEMENT + TimeDelta::milliseconds(rand::random_range(0..POSTPONEMENT.num_milliseconds()));
        not_made.release.postponed_to = Some(tools.clock.now() + pause);
        not_made.fault = Some(message);
        return Err(not_made);
    }
    let tried = Tried {
        subscription: claimed.subscription_id,
        reseller: &target.reseller,
        site: &target.site,
        was_well: claimed.was_well,
        began: started,
    };
    if outages.observe(tried, &outcome) != OutageDecision::Counts {
        return Err(hand_back("outage"));
    }
    let client_errors = if target.retry_client_errors {
        ClientErrors::Retried
    } else if tools.config.reseller.retry.strict_client_errors {
        ClientErrors::Final
    } else {
        ClientErrors::Usual
    };
    let completion = complete(
        &claimed,
        outcome.classification(client_errors),
        &policy.with(target.retry_plan),
        (started_at, elapsed),
        tools.clock.now(),
    );
    // The clock of the process that took the event in may be a little ahead of ours.
    let waited = (started_at - claimed.accepted_at).to_std().unwrap_or_default();
    Ok(Attempted {
        subscription: claimed.subscription_id,
        event_type: claimed.event_type,
        delay: (!claimed.again).then_some(waited + elapsed),
        payload_bytes,
        elapsed,
        completion,
    })
}

/// Takes the body out: no later step needs it, and it is the largest part.
fn request(
    claimed: &mut ClaimedNotification,
    target: &Target,
    traceparent: Option<String>,
    at: DateTime<Utc>,
) -> Result<WebhookRequest, DeliveryOutcome> {
    let content = Content {
        body: Bytes::from(std::mem::take(&mut claimed.body)),
        id: &claimed.event_id,
        traceparent,
    };
    signed(content, target, at)
}

fn complete(
    claimed: &ClaimedNotification,
    classification: Classification,
    policy: &RetryPolicy,
    (started_at, elapsed): (DateTime<Utc>, Duration),
    now: DateTime<Utc>,
) -> DeliveryCompletion {
    let state = transition(
        NotificationState::Sending,
        classification.event,
        claimed.attempts,
        &policy.rules(),
    )
    .expect("invariant: every classification has an event that a notification being sent accepts");
    let status = state.status();
    let next_attempt_at = (status == NotificationStatus::Retry).then(|| {
        policy.next_attempt_at(
            now,
            claimed.attempts.counted(),
            classification.retry_after,
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
        classification,
    }
}

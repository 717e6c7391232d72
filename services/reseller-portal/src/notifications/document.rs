//! Notifications and attempts as they are shown.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::notification::{FailureKind, NotificationStatus};
use domain::push::AttemptStatus;
use domain::reason::NotificationReason;
use domain::subscription::{HeldBack, PausedBy};
use http_client::NO_PUBLIC_ADDRESS;
use serde::Serialize;
use store::webhook::{DeliveryAttemptView, NotificationRow, NotificationView};
use utoipa::ToSchema;
use uuid::Uuid;

use super::end;

/// A notification in a list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NotificationRow)]
pub(crate) struct RowDocument {
    /// Its identifier.
    #[schema(example = "019aa2f0-5b1c-8025-9519-0863916ea2df")]
    pub(crate) id: Uuid,
    /// The event, as the endpoint knows it: the same in every attempt.
    pub(crate) event_id: String,
    /// The type of its event.
    #[schema(example = "domain.created")]
    pub(crate) event_type: String,
    /// Where it stands.
    pub(crate) status: NotificationStatus,
    /// Why it waits or has ended: QUOTA or RATE (a limit of the subscription), PAUSED (see pausedBy), UNVERIFIED (the endpoint has not answered
    /// its challenge yet), RESENT, REPLAYED, BUSY or BACKLOG (others of the subscription come first), POSTPONED (we could not try), SUBSCRIPTION_DEACTIVATED,
    /// SUBSCRIPTION_DELETED, EXPIRED (it waited for too long), CANCELLED (by you or by the operator of the platform), or the kind of the
    /// last failure, such as delivery/http/503/json.
    pub(crate) reason: Option<String>,
    /// Whose pause holds it back: RESELLER (you have paused the subscription) or OPERATOR (the operators of Postrider have, and let it go
    /// on); null when none does. One in RETRY keeps its last failure as reason.
    #[schema(value_type = Option<String>, example = "RESELLER")]
    pub(crate) paused_by: Option<&'static str>,
    /// Of one that will not be delivered: how it ended and what can be done, in a sentence.
    #[schema(example = "Given up: it waited for too long. A resend or a replay sends it.")]
    pub(crate) end: Option<String>,
    /// Attempts so far.
    #[schema(example = 2)]
    pub(crate) attempts: u32,
    /// When it is due, if it is SCHEDULED or RETRY; null while a pause or an endpoint that is not verified holds it back, whose end is not known.
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    /// The size of its body.
    #[schema(example = 412)]
    pub(crate) payload_bytes: u32,
    /// When its event was accepted.
    pub(crate) accepted_at: DateTime<Utc>,
    /// When its status last changed.
    pub(crate) updated_at: DateTime<Utc>,
    /// When it ended, if it has.
    pub(crate) finished_at: Option<DateTime<Utc>>,
}

/// A notification with its attempts.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Notification)]
pub(crate) struct NotificationDocument {
    #[serde(flatten)]
    pub(crate) row: RowDocument,
    /// To which subscription it goes.
    pub(crate) subscription_id: Uuid,
    /// The body of the request, to the byte: the same in every attempt.
    pub(crate) body: String,
    /// Its attempts, the first one first.
    pub(crate) history: Vec<AttemptDocument>,
}

/// An attempt to deliver a notification.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Attempt)]
pub(crate) struct AttemptDocument {
    /// Counts from 1.
    #[schema(minimum = 1)]
    pub(crate) number: u32,
    /// How far it came.
    pub(crate) status: AttemptStatus,
    /// When it began.
    pub(crate) started_at: DateTime<Utc>,
    /// How long it took, in milliseconds.
    pub(crate) millis: Option<i64>,
    /// What was sent.
    pub(crate) request: RequestDocument,
    /// What came back, if anything did.
    pub(crate) response: Option<ResponseDocument>,
    /// What kind of failure it was.
    #[schema(value_type = Option<ErrorTypeName>)]
    pub(crate) error_type: Option<String>,
    /// The failure in words.
    pub(crate) error: Option<String>,
}

/// What was sent, apart from the body, which stands with the notification.
#[derive(Serialize, ToSchema)]
#[schema(as = AttemptRequest)]
pub(crate) struct RequestDocument {
    /// Always POST.
    #[schema(example = "POST")]
    pub(crate) method: &'static str,
    /// Where to.
    pub(crate) url: String,
    /// The headers that identify it; never a signature.
    #[schema(example = json!({"content-type": "application/json", "webhook-id": "019aa2f0", "webhook-timestamp": "1795262400"}))]
    pub(crate) headers: BTreeMap<&'static str, String>,
}

/// What came back.
#[derive(Serialize, ToSchema)]
#[schema(as = AttemptResponse)]
pub(crate) struct ResponseDocument {
    /// The status code.
    #[schema(example = 503)]
    pub(crate) status: u16,
    /// The first bytes of the body.
    pub(crate) body: Option<String>,
}

/// What kind of failure an attempt was.
#[derive(ToSchema)]
#[schema(as = ErrorType, rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "describes a text for the OpenAPI document")]
pub(crate) enum ErrorTypeName {
    /// The endpoint answered with another status than 2xx.
    Http,
    /// No answer in time.
    Timeout,
    /// The name has no public address, or could not be resolved.
    Dns,
    /// No secure connection.
    Tls,
    /// No connection.
    Connect,
    /// What came was no HTTP.
    Protocol,
    /// The address that stands in the URL is not one that may be dialled.
    Egress,
    /// Ours.
    Other,
}

impl RowDocument {
    /// Of a subscription of which this holds notifications back.
    pub(super) fn of(row: NotificationRow, held: HeldBack) -> Self {
        let paused_by = held
            .paused_by
            .filter(|_| !row.status.is_terminal() && !row.claimed);
        let held = HeldBack { paused_by, ..held };
        let is_held_back = paused_by.is_some() || held.is_unverified;
        let end = end::said_of(row.status, row.reason.as_ref(), row.attempts);
        let reason = NotificationReason::told(row.reason, row.status, held);
        Self {
            id: row.id.uuid(),
            event_id: row.event_id,
            event_type: row.event_type,
            status: row.status,
            end,
            reason: reason.map(|reason| told_reason(reason.to_string())),
            paused_by: paused_by.map(PausedBy::for_reseller),
            attempts: row.attempts,
            next_attempt_at: row.next_attempt_at.filter(|_| !is_held_back),
            payload_bytes: row.payload_bytes,
            accepted_at: row.accepted_at,
            updated_at: row.updated_at,
            finished_at: row.finished_at,
        }
    }
}

impl NotificationDocument {
    /// Whose pause it waits for, if it does.
    pub(super) fn paused_by(&self) -> Option<&'static str> {
        self.row.paused_by
    }

    /// As [`RowDocument::of`].
    pub(super) fn of(view: NotificationView, held: HeldBack) -> Self {
        let key = signing::idempotency_key(view.body.as_bytes());
        let attempt = |attempt| AttemptDocument::of(attempt, &view.row.event_id, &key);
        Self {
            history: view.history.into_iter().map(attempt).collect(),
            subscription_id: view.subscription,
            body: view.body,
            row: RowDocument::of(view.row, held),
        }
    }
}

impl NotificationDocument {
    /// For a visit that may not see what it holds nor what was answered.
    pub(super) fn without_bodies(mut self) -> Self {
        self.body.clear();
        for attempt in &mut self.history {
            if let Some(response) = &mut attempt.response {
                response.body = None;
            }
        }
        self
    }
}

impl AttemptDocument {
    fn of(attempt: DeliveryAttemptView, event_id: &str, idempotency_key: &str) -> Self {
        let headers = BTreeMap::from([
            ("content-type", "application/json".to_owned()),
            ("event-id", event_id.to_owned()),
            ("idempotency-key", idempotency_key.to_owned()),
            ("webhook-id", event_id.to_owned()),
            ("webhook-timestamp", attempt.started_at.timestamp().to_string()),
        ]);
        let body = attempt.response_body;
        let (error_type, error) = told_failure(&attempt.url, attempt.error_type, attempt.error);
        Self {
            number: attempt.number,
            status: attempt.status,
            started_at: attempt.started_at,
            millis: attempt.millis,
            request: RequestDocument {
                method: "POST",
                url: attempt.url,
                headers,
            },
            response: attempt
                .response_status
                .map(|status| ResponseDocument { status, body }),
            error_type,
            error,
        }
    }
}

/// Why a notification waits or has ended, as its reseller is told: an address that may not be dialled and a name without one
/// are the same to it.
fn told_reason(reason: String) -> String {
    if reason == FailureKind::Egress.fingerprint() {
        FailureKind::Dns.fingerprint().to_owned()
    } else {
        reason
    }
}

/// A failure as the reseller is told of it: which names mean what inside our network is not among it.
pub(super) fn told_failure(
    url: &str,
    kind: Option<String>,
    error: Option<String>,
) -> (Option<String>, Option<String>) {
    let of_name = http_client::is_of_name(url) && kind.as_deref() == Some(FailureKind::Egress.as_str());
    if of_name {
        let kind = FailureKind::Dns.as_str().to_owned();
        (Some(kind), Some(NO_PUBLIC_ADDRESS.to_owned()))
    } else {
        (kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(url: &str, kind: FailureKind, error: &str) -> (String, String) {
        let told = told_failure(url, Some(kind.as_str().to_owned()), Some(error.to_owned()));
        (told.0.unwrap(), told.1.unwrap())
    }

    #[test]
    fn a_name_with_a_private_address_is_told_like_one_that_does_not_exist() {
        let missing = told("https://missing.example/", FailureKind::Dns, NO_PUBLIC_ADDRESS);
        for error in [NO_PUBLIC_ADDRESS, "the endpoint has a private address"] {
            let private = told("https://vault.example/", FailureKind::Egress, error);
            assert_eq!(private, missing);
        }
        assert_eq!(
            told_reason("delivery/egress".to_owned()),
            told_reason("delivery/dns".to_owned())
        );
        assert_eq!(told_reason("QUOTA".to_owned()), "QUOTA");
    }

    #[test]
    fn what_an_address_in_the_url_is_may_be_told() {
        let told = told(
            "https://10.0.0.1/",
            FailureKind::Egress,
            "the endpoint has a private address",
        );
        assert_eq!(
            told,
            (
                "EGRESS".to_owned(),
                "the endpoint has a private address".to_owned()
            )
        );
    }
}

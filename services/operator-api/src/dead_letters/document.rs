//! A dead letter as it is shown.

use chrono::{DateTime, Utc};
use serde::Serialize;
use store::DeadLetterView;
use utoipa::ToSchema;
use uuid::Uuid;

/// A dead letter.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetter)]
pub(crate) struct DeadLetterDocument {
    /// Identifies the dead letter.
    id: Uuid,
    /// `push` or `reseller`.
    #[schema(example = "reseller")]
    lane: &'static str,
    /// `OPEN` until something is done about it: then `REPLAYED` or `DISCARDED`.
    #[schema(example = "OPEN")]
    state: &'static str,
    /// `FAILED` or `GIVEN_UP`: the push or the notification ended so. `REJECTED`: the broker gave its message up, and it
    /// goes on by itself. `MALFORMED`: a message that is none of ours.
    #[schema(example = "GIVEN_UP")]
    reason: &'static str,
    /// What failures of one kind have in common.
    #[schema(example = "delivery/http/503/html")]
    fingerprint: String,
    /// Where the failure was: scheme, host and port of the endpoint, or Swrve's code; empty when nothing answered for it.
    #[schema(example = "https://hooks.acme.example")]
    target: String,
    /// The failure in words.
    #[schema(example = "the endpoint failed (503)")]
    detail: String,
    /// The push that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    push_id: Option<Uuid>,
    /// The notification that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    notification_id: Option<Uuid>,
    /// The subscription of the notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    subscription_id: Option<Uuid>,
    /// The reseller of the notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "acme")]
    reseller_id: Option<String>,
    /// The type of the notification's event.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "domain.created")]
    event_type: Option<String>,
    /// The push's message prototype.
    #[serde(skip_serializing_if = "Option::is_none")]
    prototype: Option<String>,
    /// How many attempts there had been.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    /// What kind of failure the last one was: `SWRVE`, `MESSAGE_PROTOTYPE_KEY` or `OTHER` of a push; `HTTP`, `TIMEOUT`,
    /// `DNS`, `TLS`, `CONNECT`, `PROTOCOL`, `EGRESS` or `OTHER` of a notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "HTTP")]
    error_type: Option<String>,
    /// When it was written.
    created_at: DateTime<Utc>,
    /// When it was replayed or discarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_at: Option<DateTime<Utc>>,
    /// By whom: the name and identifier of the API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_by: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// The bulk job that did so, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<Uuid>,
}

impl From<DeadLetterView> for DeadLetterDocument {
    fn from(view: DeadLetterView) -> Self {
        Self {
            id: view.id,
            lane: view.lane.as_str(),
            state: view.state.as_str(),
            reason: view.reason.as_str(),
            fingerprint: view.fingerprint,
            target: view.target,
            detail: view.detail,
            push_id: view.push,
            notification_id: view.notification,
            subscription_id: view.subscription,
            reseller_id: view.reseller,
            event_type: view.event_type,
            prototype: view.prototype,
            attempts: view.attempts,
            error_type: view.error_type,
            created_at: view.created_at,
            resolved_at: view.resolved_at,
            resolved_by: view.resolved_by,
            note: view.note,
            job_id: view.job,
        }
    }
}

//! One dead letter as it is stored.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::filter::{DeadLetterReason, DeadLetterState};
use crate::read::{Count, Name, Nullable};
use crate::{DeadLetterLane, Error, Fate, Store};

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetter)]
pub struct DeadLetterView {
    /// Identifies the dead letter.
    pub id: Uuid,
    /// `push` or `reseller`.
    #[schema(value_type = String, example = "reseller")]
    pub lane: DeadLetterLane,
    /// `OPEN` until something is done about it: then `REPLAYED` or `DISCARDED`.
    #[schema(value_type = String, example = "OPEN")]
    pub state: DeadLetterState,
    /// `FAILED` or `GIVEN_UP`: the push or the notification ended so. `REJECTED`: the broker gave its message up, and it
    /// goes on by itself. `MALFORMED`: a message that is none of ours.
    #[schema(value_type = String, example = "GIVEN_UP")]
    pub reason: DeadLetterReason,
    /// What failures of one kind have in common.
    #[schema(example = "delivery/http/503/html")]
    pub fingerprint: String,
    /// Where the failure was: scheme, host and port of the endpoint, or Swrve's code; empty when nothing answered for it.
    #[schema(example = "https://hooks.acme.example")]
    pub target: String,
    /// The failure in words.
    #[schema(example = "the endpoint failed (503)")]
    pub detail: String,
    /// The push that it is about.
    #[serde(rename = "pushId", skip_serializing_if = "Option::is_none")]
    pub push: Option<Uuid>,
    /// The notification that it is about.
    #[serde(rename = "notificationId", skip_serializing_if = "Option::is_none")]
    pub notification: Option<Uuid>,
    /// The subscription of the notification.
    #[serde(rename = "subscriptionId", skip_serializing_if = "Option::is_none")]
    pub subscription: Option<Uuid>,
    /// The reseller of the notification.
    #[serde(rename = "resellerId", skip_serializing_if = "Option::is_none")]
    #[schema(example = "acme")]
    pub reseller: Option<String>,
    /// The type of the notification's event.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "domain.created")]
    pub event_type: Option<String>,
    /// The push's message prototype.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prototype: Option<String>,
    /// How many attempts there had been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// What kind of failure the last one was: `SWRVE`, `MESSAGE_PROTOTYPE_KEY` or `OTHER` of a push; `HTTP`, `TIMEOUT`,
    /// `DNS`, `TLS`, `CONNECT`, `PROTOCOL`, `EGRESS` or `OTHER` of a notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "HTTP")]
    pub error_type: Option<String>,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// When it was replayed or discarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<DateTime<Utc>>,
    /// By whom: the name and identifier of the API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The bulk job that did so, if one did.
    #[serde(rename = "jobId", skip_serializing_if = "Option::is_none")]
    pub job: Option<Uuid>,
    /// Of one that was replayed, what came of that replay: `DELIVERED`, `WAITING`, `FAILED_AGAIN` (whatever came of a later one), `CANCELLED`,
    /// or `GONE` when its push or notification is not stored any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "DELIVERED")]
    pub outcome: Option<Fate>,
}

impl Store {
    /// The dead letters with these identifiers, in their order; those that do not exist are left out.
    pub async fn find_dead_letters(&self, ids: &[Uuid]) -> Result<Vec<DeadLetterView>, Error> {
        Ok(
            sqlx::query_file_as!(DeadLetterView, "queries/dead_letters/find_dead_letters.sql", ids,)
                .fetch_all(&self.pool)
                .await?,
        )
    }
}

//! One dead letter as it is stored.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::filter::{DeadLetterReason, DeadLetterState};
use crate::read::{Count, Name, Nullable};
use crate::{DeadLetterLane, Error, Store};

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterView {
    /// Its identifier.
    pub id: Uuid,
    /// Whose it is.
    pub lane: DeadLetterLane,
    /// What has become of it.
    pub state: DeadLetterState,
    /// Why there is one.
    pub reason: DeadLetterReason,
    /// Failures of one kind share it.
    pub fingerprint: String,
    /// Where the failure was: scheme, host and port of the endpoint, or Swrve's code; empty when nothing answered for it.
    pub target: String,
    /// The failure in words.
    pub detail: String,
    /// The push that it is about.
    pub push: Option<Uuid>,
    /// The notification that it is about.
    pub notification: Option<Uuid>,
    /// The subscription of the notification.
    pub subscription: Option<Uuid>,
    /// The reseller of the notification.
    pub reseller: Option<String>,
    /// The type of the notification's event.
    pub event_type: Option<String>,
    /// The push's message prototype.
    pub prototype: Option<String>,
    /// How many attempts there had been.
    pub attempts: Option<u32>,
    /// What kind of failure the last one was.
    pub error_type: Option<String>,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// When it was replayed or discarded.
    pub resolved_at: Option<DateTime<Utc>>,
    /// By whom.
    pub resolved_by: Option<String>,
    /// Why.
    pub note: Option<String>,
    /// The bulk job that did so, if one did.
    pub job: Option<Uuid>,
}

impl Store {
    /// The dead letters with these identifiers, in their order; those that do not exist are left out.
    pub async fn find_dead_letters(&self, ids: &[Uuid]) -> Result<Vec<DeadLetterView>, Error> {
        Ok(sqlx::query_as!(
            DeadLetterView,
            r#"
            SELECT d.id, d.lane AS "lane: Name<_>", d.state AS "state: Name<_>", d.reason AS "reason: Name<_>", d.fingerprint,
                   d.target, d.detail, d.push_id AS push, d.notification_id AS notification,
                   d.subscription_id AS subscription, d.reseller_id AS reseller, d.event_type, d.prototype,
                   d.attempts AS "attempts!: Nullable<Count>", d.error_type, d.created_at, d.resolved_at, d.resolved_by, d.note,
                   d.job_id AS job
            FROM UNNEST($1::uuid[]) WITH ORDINALITY AS i(id, place) JOIN dead_letters d ON d.id = i.id
            ORDER BY i.place
            "#,
            ids,
        )
        .fetch_all(&self.pool)
        .await?)
    }
}

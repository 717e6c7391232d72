//! One dead letter as it is stored.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::filter::{DeadLetterReason, DeadLetterState};
use crate::{DeadLetterLane, Error, Store, stored};

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

struct Row {
    id: Uuid,
    lane: String,
    state: String,
    reason: String,
    fingerprint: String,
    target: String,
    detail: String,
    push_id: Option<Uuid>,
    notification_id: Option<Uuid>,
    subscription_id: Option<Uuid>,
    reseller_id: Option<String>,
    event_type: Option<String>,
    prototype: Option<String>,
    attempts: Option<i32>,
    error_type: Option<String>,
    created_at: DateTime<Utc>,
    resolved_at: Option<DateTime<Utc>>,
    resolved_by: Option<String>,
    note: Option<String>,
    job_id: Option<Uuid>,
}

impl TryFrom<Row> for DeadLetterView {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.id,
            lane: stored("lane", &row.lane)?,
            state: stored("state of a dead letter", &row.state)?,
            reason: stored("reason of a dead letter", &row.reason)?,
            fingerprint: row.fingerprint,
            target: row.target,
            detail: row.detail,
            push: row.push_id,
            notification: row.notification_id,
            subscription: row.subscription_id,
            reseller: row.reseller_id,
            event_type: row.event_type,
            prototype: row.prototype,
            attempts: row.attempts.map(i32::unsigned_abs),
            error_type: row.error_type,
            created_at: row.created_at,
            resolved_at: row.resolved_at,
            resolved_by: row.resolved_by,
            note: row.note,
            job: row.job_id,
        })
    }
}

impl Store {
    /// The dead letters with these identifiers, in their order; those that do not exist are left out.
    pub async fn find_dead_letters(&self, ids: &[Uuid]) -> Result<Vec<DeadLetterView>, Error> {
        let rows = sqlx::query_as!(
            Row,
            r#"
            SELECT d.id, d.lane, d.state, d.reason, d.fingerprint, d.target, d.detail, d.push_id, d.notification_id,
                   d.subscription_id, d.reseller_id, d.event_type, d.prototype, d.attempts, d.error_type, d.created_at,
                   d.resolved_at, d.resolved_by, d.note, d.job_id
            FROM UNNEST($1::uuid[]) WITH ORDINALITY AS i(id, place) JOIN dead_letters d ON d.id = i.id
            ORDER BY i.place
            "#,
            ids,
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(DeadLetterView::try_from).collect()
    }
}

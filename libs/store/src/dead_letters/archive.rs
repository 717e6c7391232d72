//! Dead letters that come from the broker. Those of pushes and notifications that ended badly are written where these
//! end.

use domain::named;
use serde_json::Value;
use uuid::Uuid;

use super::filter::DeadLetterReason;
use crate::text::{storable, storable_json};
use crate::{Error, Store};

/// Which lane a dead letter is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum DeadLetterLane {
    /// Pushes.
    Push,
    /// Notifications.
    Reseller,
}

named!(DeadLetterLane, "lane");

/// A message that the broker gave up.
#[derive(Debug, Clone)]
pub struct BrokerDeadLetter {
    /// Whose queue it was in.
    pub lane: DeadLetterLane,
    /// The push or notification that the message was about, when it could be read.
    pub id: Option<Uuid>,
    /// Why the broker gave it up, as it says itself.
    pub detail: String,
    /// Failures of one kind share it.
    pub fingerprint: String,
    /// Body, headers, queue and count.
    pub message: Value,
}

impl Store {
    /// Archives a message that the broker gave up, in one transaction with its consequence: what it was about waits for
    /// the queue again, since a lost message says nothing about the push or notification itself. Returns whether it does.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then the message must not be acknowledged.
    pub async fn archive_dead_letter(&self, letter: &BrokerDeadLetter) -> Result<bool, Error> {
        let reason = if letter.id.is_some() {
            DeadLetterReason::Rejected
        } else {
            DeadLetterReason::Malformed
        };
        let requeued = sqlx::query_scalar!(
            r#"
            WITH letter AS (
                INSERT INTO dead_letters (lane, reason, fingerprint, push_id, notification_id, subscription_id, reseller_id,
                                          event_type, prototype, detail, message)
                SELECT $6, $2, left($3, 300), CASE WHEN $6 = 'push' THEN $1::uuid END, CASE WHEN $6 = 'reseller' THEN $1::uuid END,
                       n.subscription_id, n.reseller_id, n.event_type, left(p.message_prototype_key, 200), $4, $5
                FROM (VALUES (1)) AS one
                LEFT JOIN push_notifications p ON $6 = 'push' AND p.id = $1
                LEFT JOIN notifications n ON $6 = 'reseller' AND n.id = $1),
            queued_push AS (
                SELECT id FROM push_notifications
                WHERE $6 = 'push' AND id = $1 AND leased_until IS NOT NULL AND lease_token IS NULL
                FOR UPDATE),
            push AS (
                UPDATE push_notifications p SET status = 'PENDING', leased_until = NULL, updated_at = now()
                FROM queued_push q WHERE p.id = q.id
                RETURNING p.id),
            queued_notification AS (
                SELECT id FROM notifications
                WHERE $6 = 'reseller' AND id = $1 AND leased_until IS NOT NULL AND lease_token IS NULL
                FOR UPDATE),
            notification AS (
                UPDATE notifications n
                SET status = CASE WHEN n.attempts = 0 THEN 'PENDING' ELSE 'RETRY' END, leased_until = NULL,
                    next_attempt_at = CASE WHEN n.attempts > 0 THEN now() END, updated_at = now()
                FROM queued_notification q WHERE n.id = q.id
                RETURNING n.id)
            SELECT (SELECT count(*) FROM push) + (SELECT count(*) FROM notification) AS "count!"
            "#,
            letter.id,
            reason.as_str(),
            &*storable(&letter.fingerprint),
            &*storable(&letter.detail),
            storable_json(&letter.message),
            letter.lane.as_str(),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(requeued > 0)
    }
}

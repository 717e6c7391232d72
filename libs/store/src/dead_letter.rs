//! Dead letters that come from the broker. Those of pushes that ended badly are written where the push ends.

use domain::push::PushId;
use serde_json::Value;

use crate::text::{storable, storable_json};
use crate::{Error, Store};

/// A message that the broker gave up.
#[derive(Debug, Clone)]
pub struct BrokerDeadLetter {
    /// The push that the message was about, when it could be read.
    pub push_id: Option<PushId>,
    /// Why the broker gave it up, as it says itself.
    pub detail: String,
    /// Failures of one kind share it.
    pub fingerprint: String,
    /// Body, headers, queue and count.
    pub message: Value,
}

impl Store {
    /// Archives a message that the broker gave up, in one transaction with its consequence: the push that it was about
    /// waits for the queue again, since a lost message says nothing about the push itself. Returns whether one does.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then the message must not be acknowledged.
    pub async fn archive_dead_letter(&self, letter: &BrokerDeadLetter) -> Result<bool, Error> {
        let id = letter.push_id.map(PushId::uuid);
        let reason = if id.is_some() { "REJECTED" } else { "MALFORMED" };
        let requeued = sqlx::query_scalar!(
            r#"
            WITH letter AS (
                INSERT INTO dead_letters (lane, reason, fingerprint, push_id, detail, message)
                VALUES ('push', $2, $3, $1, $4, $5)),
            queued AS (
                SELECT id FROM push_notifications
                WHERE id = $1 AND status = 'IN_MEMORY' AND lease_token IS NULL
                FOR UPDATE),
            requeued AS (
                UPDATE push_notifications p SET status = 'PENDING', leased_until = NULL, updated_at = now()
                FROM queued WHERE p.id = queued.id
                RETURNING p.id)
            SELECT count(*) AS "count!" FROM requeued
            "#,
            id,
            reason,
            &*storable(&letter.fingerprint),
            &*storable(&letter.detail),
            storable_json(&letter.message),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(requeued > 0)
    }
}

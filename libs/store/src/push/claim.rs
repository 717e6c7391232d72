//! Claiming pushes for sending: the attempt is counted and recorded before anything is sent.

use std::time::Duration;

use domain::push::{Platform, PushId};
use sqlx::Connection as _;
use uuid::Uuid;

use crate::read::{Count, Name};
use crate::tentative::{Taken, Tentative};
use crate::{Error, Lease, Store, column, interval};

/// Who claims, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The lease that makes the claimant the one sender; a claim under an old epoch takes nothing.
    pub leader: &'a Lease,
    /// How long the claim holds, by the clock of the database.
    pub lease: Duration,
}

/// A push that is ours to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedPush {
    /// Its identifier.
    pub id: PushId,
    /// Proves the claim when the attempt is completed.
    pub lease_token: Uuid,
    /// Attempts so far, this one included.
    pub attempts: u32,
    /// Of them, before it was replayed last: those do not count against the retries.
    pub replayed_after: u32,
    /// The device's platform.
    pub platform: Platform,
    /// Names the Swrve campaign.
    pub message_prototype_key: Option<String>,
    /// The client's device id in Swrve.
    pub push_key: String,
    /// The text.
    pub message: String,
    /// When it may be sent.
    pub cron_expression: Option<String>,
    /// W3C trace context of the request that brought it.
    pub traceparent: Option<String>,
}

impl Store {
    /// Claims those of `ids` that wait in the queue, and starts an attempt for each. What is not returned was finished,
    /// claimed or rescheduled meanwhile: its message has nothing more to say.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then nothing is claimed, or what is gets handed back. The same when the call is
    /// given up.
    pub async fn claim_pushes(&self, ids: &[PushId], claim: Claim<'_>) -> Result<Vec<ClaimedPush>, Error> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
        let lease_token = Uuid::now_v7();
        let mut connection = self.resting.take().await?;
        let mut transaction = connection.begin().await?;
        let claimed = sqlx::query_as!(
            ClaimedPush,
            r#"
            WITH due AS (
                SELECT p.id FROM UNNEST($1::uuid[]) AS i(id) JOIN push_notifications p ON p.id = i.id
                -- `CASE` keeps the planner to the ids: as conditions these would have it read all that is leased or waits along their
                -- indexes, which it takes for empty when the table was last analysed while nothing waited.
                WHERE CASE p.status WHEN 'IN_MEMORY' THEN p.lease_token IS NULL WHEN 'PENDING' THEN true ELSE false END
                  AND EXISTS (SELECT FROM leases l WHERE l.name = $2 AND l.holder = $3 AND l.epoch = $4)
                  AND (SELECT enter_lane(l.name, l.changes) FROM lanes l WHERE l.name = 'push')
                ORDER BY p.id
                FOR UPDATE OF p),
            claimed AS (
                UPDATE push_notifications p
                SET status = 'IN_MEMORY', attempts = p.attempts + 1, lease_token = $5,
                    leased_until = now() + $6::interval, updated_at = now()
                FROM due WHERE p.id = due.id
                RETURNING p.id, p.attempts, p.replayed_after, p.platform, p.message_prototype_key, p.push_key, p.message,
                          p.cron_expression, p.traceparent),
            attempt AS (
                INSERT INTO send_attempts (push_notification_id, number, status)
                SELECT id, attempts, 'IN_PROCESS' FROM claimed)
            SELECT id AS "id!", $5 AS "lease_token!", attempts AS "attempts!: Count",
                   replayed_after AS "replayed_after!: Count", platform AS "platform!: Name<_>", message_prototype_key,
                   push_key AS "push_key!", message AS "message!", cron_expression, traceparent
            FROM claimed
            "#,
            &ids,
            claim.leader.name,
            claim.leader.holder,
            claim.leader.epoch,
            lease_token,
            interval(claim.lease),
        )
        .fetch_all(&mut *transaction)
        .await?;
        let ids = claimed.iter().map(|push| push.id).collect();
        let tentative = Tentative::new(self, Taken::Pushes(ids, lease_token));
        transaction.commit().await?;
        tentative.keep();
        connection.rest();
        Ok(claimed)
    }

    /// Whether any of these would be claimed now if it were up to the push alone.
    pub async fn any_push_waits(&self, ids: &[PushId]) -> Result<bool, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            SELECT EXISTS (
                SELECT FROM UNNEST($1::uuid[]) AS i(id) JOIN push_notifications p ON p.id = i.id
                WHERE CASE p.status WHEN 'IN_MEMORY' THEN p.lease_token IS NULL WHEN 'PENDING' THEN true ELSE false END) AS "waits!"
            "#,
            &column(ids, |id| id.uuid()),
        )
        .fetch_one(&self.pool)
        .await?)
    }
}

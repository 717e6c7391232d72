//! What an operator can have done at once that services do by themselves in time: rescuing what was lost, and taking out of
//! the queues what the broker may have lost with them. Each batch is a transaction of its own; the audit log has one entry
//! before the first and one with the counts after the last.

mod point_in_time;

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::{Act, Error, Rescued, Store};

pub use point_in_time::{AfterRestore, Gap, NotRecovered, PossiblySent, Stopped};

/// Rows changed in one statement by a rescue.
const RESCUE_BATCH: u32 = 500;
/// Batches of one rescue; far more than there can be lost, unless they are lost as fast.
const RESCUE_BATCHES: u32 = 2_000;
/// Rows taken out of the queues in one statement.
const REQUEUE_BATCH: i64 = 1_000;

/// What a rescue on request did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RescuedNow {
    /// Of pushes.
    pub pushes: Rescued,
    /// Of notifications.
    pub notifications: Rescued,
}

/// What waits for the queues again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[schema(as = Rebuilt)]
pub struct Requeued {
    /// Pushes.
    pub pushes: u64,
    /// Notifications.
    pub notifications: u64,
}

impl Store {
    /// Rescues everything whose lease ran out, as the periodic jobs do.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; what was rescued before stays so.
    pub async fn rescue_now(
        &self,
        max_attempts: u32,
        max_retries: u32,
        act: Act<'_>,
    ) -> Result<RescuedNow, Error> {
        let begun = Instant::now();
        self.note(&act, "rescue.start", "leases", json!({})).await?;
        let mut all = RescuedNow::default();
        for _ in 0..RESCUE_BATCHES {
            let rescued = self.rescue_pushes(RESCUE_BATCH, max_attempts).await?;
            all.pushes += rescued;
            if rescued.count() < u64::from(RESCUE_BATCH) {
                break;
            }
        }
        for _ in 0..RESCUE_BATCHES {
            let rescued = self
                .rescue_notifications(act.at, RESCUE_BATCH, max_retries)
                .await?;
            all.notifications += rescued;
            if rescued.count() < u64::from(RESCUE_BATCH) {
                break;
            }
        }
        let details = json!({
            "pushes": {"pending": all.pushes.pending, "givenUp": all.pushes.given_up},
            "notifications": {
                "pending": all.notifications.pending,
                "retry": all.notifications.retry,
                "givenUp": all.notifications.given_up,
            },
        });
        self.note(&later(act, begun), "rescue.end", "leases", details)
            .await?;
        Ok(all)
    }

    /// Takes everything that is queued and not claimed out of the queues, so that the promoting jobs put it there again. A
    /// message that was not lost finds nothing to do, or claims what its second would have. What is queued meanwhile has
    /// its message in queues that exist, and is left alone.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; what was taken out before stays so.
    pub async fn requeue_everything(&self, act: Act<'_>) -> Result<Requeued, Error> {
        let begun = Instant::now();
        self.note(&act, "broker.rebuild", "broker", json!({})).await?;
        let requeued = Requeued {
            pushes: self.requeue_pushes().await?,
            notifications: self.requeue_notifications(act.at).await?,
        };
        let details = json!({"pushes": requeued.pushes, "notifications": requeued.notifications});
        self.note(&later(act, begun), "broker.rebuilt", "broker", details)
            .await?;
        Ok(requeued)
    }

    async fn requeue_pushes(&self) -> Result<u64, Error> {
        let last = sqlx::query_scalar!(
            r#"
            SELECT leased_until AS "leased_until!" FROM push_notifications
            WHERE status = 'IN_MEMORY' AND lease_token IS NULL ORDER BY leased_until DESC LIMIT 1
            "#,
        )
        .fetch_optional(&self.pool)
        .await?;
        let (Some(last), mut from, mut count) = (last, DateTime::UNIX_EPOCH, 0u64) else {
            return Ok(0);
        };
        loop {
            let batch = sqlx::query!(
                r#"
                WITH queued AS (
                    SELECT id, leased_until FROM push_notifications
                    WHERE status = 'IN_MEMORY' AND lease_token IS NULL AND leased_until BETWEEN $1 AND $2
                    ORDER BY leased_until LIMIT $3 FOR UPDATE SKIP LOCKED),
                requeued AS (
                    UPDATE push_notifications p SET status = 'PENDING', leased_until = NULL, updated_at = now()
                    FROM queued q WHERE p.id = q.id
                    RETURNING p.id)
                SELECT (SELECT count(*) FROM requeued) AS "count!", (SELECT max(leased_until) FROM queued) AS reached
                "#,
                from,
                last,
                REQUEUE_BATCH,
            )
            .fetch_one(&self.pool)
            .await?;
            count += batch.count.unsigned_abs();
            // Rows leave the set as they are changed, so the next batch may begin where this one ended.
            let Some(reached) = batch.reached else {
                return Ok(count);
            };
            from = reached;
        }
    }

    async fn requeue_notifications(&self, at: DateTime<Utc>) -> Result<u64, Error> {
        let last = sqlx::query_scalar!(
            r#"
            SELECT leased_until AS "leased_until!" FROM notifications
            WHERE status = 'IN_MEMORY' AND lease_token IS NULL ORDER BY leased_until DESC LIMIT 1
            "#,
        )
        .fetch_optional(&self.pool)
        .await?;
        let (Some(last), mut from, mut count) = (last, DateTime::UNIX_EPOCH, 0u64) else {
            return Ok(0);
        };
        loop {
            let batch = sqlx::query!(
                r#"
                WITH queued AS (
                    SELECT id, leased_until, attempts > 0 AS tried FROM notifications
                    WHERE status = 'IN_MEMORY' AND lease_token IS NULL AND leased_until BETWEEN $1 AND $2
                    ORDER BY leased_until LIMIT $3 FOR UPDATE SKIP LOCKED),
                requeued AS (
                    UPDATE notifications n
                    SET status = CASE WHEN q.tried THEN 'RETRY' ELSE 'PENDING' END, leased_until = NULL, reason = NULL,
                        next_attempt_at = CASE WHEN q.tried THEN $4::timestamptz END, updated_at = $4
                    FROM queued q WHERE n.id = q.id
                    RETURNING n.id)
                SELECT (SELECT count(*) FROM requeued) AS "count!", (SELECT max(leased_until) FROM queued) AS reached
                "#,
                from,
                last,
                REQUEUE_BATCH,
                at,
            )
            .fetch_one(&self.pool)
            .await?;
            count += batch.count.unsigned_abs();
            let Some(reached) = batch.reached else {
                return Ok(count);
            };
            from = reached;
        }
    }

    async fn note(
        &self,
        act: &Act<'_>,
        action: &str,
        subject: &str,
        details: serde_json::Value,
    ) -> Result<(), Error> {
        let mut connection = self.pool.acquire().await?;
        let entry = act.entry(action, subject.to_owned(), details);
        entry.record(&mut connection).await
    }
}

/// The same act when it has been done. Later by a millisecond at least, by which the entries of the log are in order.
fn later(act: Act<'_>, begun: Instant) -> Act<'_> {
    let took = begun.elapsed().max(Duration::from_millis(1));
    Act {
        at: act.at + TimeDelta::from_std(took).unwrap_or_default(),
        ..act
    }
}

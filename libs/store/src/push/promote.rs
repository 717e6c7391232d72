//! Promotion: taking pushes that wait in the database and marking them as handed to the broker, before they are.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::push::PushId;
use sqlx::postgres::types::PgInterval;

use crate::{Error, Store, column, interval};

/// Which of the waiting pushes to promote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromotionQueue {
    /// `PENDING`, oldest first.
    Pending,
    /// `SCHEDULED` and `RETRY` whose time had come at this instant, longest overdue first.
    Due(DateTime<Utc>),
}

/// A push whose message is to be published now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promoted {
    /// The push.
    pub id: PushId,
    /// W3C trace context of the request that brought it.
    pub traceparent: Option<String>,
}

impl Store {
    /// Promotes at most `limit` pushes and returns them in the order of the queue. Each is taken for lost after
    /// `queue_lease`. Rows that another replica holds are passed over, so two at once promote different ones.
    pub async fn promote_pushes(
        &self,
        queue: PromotionQueue,
        limit: u32,
        queue_lease: Duration,
    ) -> Result<Vec<Promoted>, Error> {
        let (limit, lease) = (i64::from(limit), interval(queue_lease));
        match queue {
            PromotionQueue::Pending => self.promote_pending(limit, lease).await,
            PromotionQueue::Due(at) => self.promote_due(at, limit, lease).await,
        }
    }

    async fn promote_pending(&self, limit: i64, lease: PgInterval) -> Result<Vec<Promoted>, Error> {
        Ok(sqlx::query_as!(
            Promoted,
            r#"
            WITH waiting AS (
                SELECT id FROM push_notifications WHERE status = 'PENDING'
                ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED),
            promoted AS (
                UPDATE push_notifications p
                SET status = 'IN_MEMORY', leased_until = now() + $2::interval, updated_at = now()
                FROM waiting WHERE p.id = waiting.id
                RETURNING p.id, p.traceparent)
            SELECT id AS "id!", traceparent FROM promoted ORDER BY id
            "#,
            limit,
            lease,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    async fn promote_due(
        &self,
        at: DateTime<Utc>,
        limit: i64,
        lease: PgInterval,
    ) -> Result<Vec<Promoted>, Error> {
        Ok(sqlx::query_as!(
            Promoted,
            r#"
            WITH waiting AS (
                SELECT id, next_attempt_at FROM push_notifications
                WHERE status IN ('SCHEDULED', 'RETRY') AND next_attempt_at <= $1
                ORDER BY next_attempt_at, id LIMIT $2 FOR UPDATE SKIP LOCKED),
            promoted AS (
                UPDATE push_notifications p
                SET status = 'IN_MEMORY', leased_until = now() + $3::interval, next_attempt_at = NULL,
                    updated_at = now()
                FROM waiting WHERE p.id = waiting.id
                RETURNING p.id, p.traceparent, waiting.next_attempt_at)
            SELECT id AS "id!", traceparent FROM promoted ORDER BY next_attempt_at, id
            "#,
            at,
            limit,
            lease,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Marks those of `ids` as `PENDING` that were to be handed to the broker and were not; returns how many.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then they are rescued when their lease runs out.
    pub async fn mark_not_enqueued(&self, ids: &[PushId]) -> Result<u64, Error> {
        let marked = sqlx::query!(
            r#"
            WITH queued AS (
                SELECT p.id FROM UNNEST($1::uuid[]) AS i(id) JOIN push_notifications p ON p.id = i.id
                -- Leased is IN_MEMORY. Saying that would let the planner read everything that is.
                WHERE p.leased_until IS NOT NULL AND p.lease_token IS NULL
                ORDER BY p.id FOR UPDATE OF p)
            UPDATE push_notifications p
            SET status = 'PENDING', leased_until = NULL, updated_at = now()
            FROM queued WHERE p.id = queued.id
            "#,
            &column(ids, |id| id.uuid()),
        )
        .execute(&self.pool)
        .await?;
        Ok(marked.rows_affected())
    }
}

//! Taking queued notifications back into the database: the broker did not take them, or there is no room for them where they are.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::notification::NotificationId;
use domain::reason::NotificationReason;

use crate::{Error, Store, column, interval};

/// Why a notification is sidelined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpillReason {
    /// The broker did not take its message.
    NotEnqueued,
    /// The engine that got its message has no room for more of its subscription, and comes back for it.
    Busy,
    /// Its subscription gets nothing but probes, from the engine that got its message, which comes back for it.
    Withheld,
}

impl SpillReason {
    fn reason(self) -> Option<NotificationReason> {
        match self {
            Self::NotEnqueued => None,
            Self::Busy => Some(NotificationReason::Busy),
            Self::Withheld => Some(NotificationReason::Withheld),
        }
    }
}

/// How long what waits for a subscription is left to the engine that sidelined some of it, by the clock of the database. A longer time was
/// not written by it and holds nothing up.
pub(super) const LEFT_TO_OTHERS: Duration = Duration::from_secs(5);
/// Retries that the broker did not take come back after this time and up to as much again.
const RETRY_LATER: Duration = Duration::from_secs(5);

impl Store {
    /// Takes those of `ids` that are queued and not claimed out of the queue: they wait in the database again. Returns
    /// how many.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then they are rescued when their lease runs out.
    pub async fn spill_notifications(
        &self,
        ids: &[NotificationId],
        why: SpillReason,
        at: DateTime<Utc>,
    ) -> Result<u64, Error> {
        let reason = why.reason();
        let spilled = sqlx::query!(
            r#"
            WITH queued AS (
                SELECT n.id, n.subscription_id, n.attempts > 0 AS tried
                FROM UNNEST($1::uuid[]) AS i(id) JOIN notifications n ON n.id = i.id
                -- Leased is IN_MEMORY. Saying that would let the planner read everything that is.
                WHERE n.leased_until IS NOT NULL AND n.lease_token IS NULL
                ORDER BY n.id FOR UPDATE OF n),
            noted AS (
                INSERT INTO subscription_sidelines AS l (subscription_id, lane, until)
                SELECT DISTINCT subscription_id, CASE WHEN tried THEN 'retry' ELSE 'first' END,
                       now() + $5::interval
                FROM queued WHERE $3 ORDER BY 1, 2
                ON CONFLICT (subscription_id, lane) DO UPDATE SET until = excluded.until)
            UPDATE notifications n
            SET status = CASE WHEN q.tried THEN 'RETRY' ELSE 'PENDING' END, leased_until = NULL,
                next_attempt_at = CASE WHEN q.tried AND $3 THEN $2::timestamptz
                                       WHEN q.tried THEN $2::timestamptz + $4::interval * (1 + random()) END,
                reason = $6, updated_at = $2
            FROM queued q WHERE n.id = q.id
            "#,
            &column(ids, |id| id.uuid()),
            at,
            why != SpillReason::NotEnqueued,
            interval(RETRY_LATER),
            interval(LEFT_TO_OTHERS),
            reason.as_ref().map(NotificationReason::as_str),
        )
        .execute(&self.pool)
        .await?;
        Ok(spilled.rows_affected())
    }
}

//! What Swrve answered to the pushes that still wait.

use chrono::{DateTime, Utc};

use crate::read::Count;
use crate::{Error, Store};

/// Rows looked at of each state in which a push waits, those first that are due first.
const EXAMINED_MAX: i64 = 500;
/// Most kinds of failures that are told apart.
const KINDS_MAX: i64 = 3;

/// A way in which Swrve has failed pushes that still wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwrveFailure {
    /// Swrve's own code, else the HTTP status; `None` when it did not answer.
    pub code: Option<i64>,
    /// What it said to one of them, or why there was no answer.
    pub message: Option<String>,
    /// How many pushes failed so at their last attempt, of those that are looked at.
    pub pushes: u64,
    /// When the first of these attempts began.
    pub since: DateTime<Utc>,
}

impl Store {
    /// How Swrve has failed the pushes that wait to be tried again, or are being tried again, the most frequent way first.
    pub async fn swrve_failures(&self) -> Result<Vec<SwrveFailure>, Error> {
        Ok(sqlx::query_as!(
            SwrveFailure,
            r#"
            WITH tried AS MATERIALIZED (
                SELECT w.id FROM (
                    (SELECT id, attempts, replayed_after FROM push_notifications WHERE status IN ('SCHEDULED', 'RETRY')
                     ORDER BY next_attempt_at, id LIMIT $1)
                    UNION ALL
                    (SELECT id, attempts, replayed_after FROM push_notifications WHERE status = 'PENDING' ORDER BY id LIMIT $1)
                    UNION ALL
                    (SELECT id, attempts, replayed_after FROM push_notifications WHERE status = 'IN_MEMORY'
                     ORDER BY leased_until LIMIT $1)) AS w
                WHERE w.attempts > w.replayed_after)
            SELECT a.code, min(a.message) AS message, count(*) AS "pushes!: Count", min(a.started_at) AS "since!"
            FROM tried t
            CROSS JOIN LATERAL (
                SELECT error_type, swrve_error_code AS code, left(swrve_error_message, 100) AS message, started_at
                FROM send_attempts WHERE push_notification_id = t.id AND status <> 'IN_PROCESS'
                ORDER BY number DESC LIMIT 1) AS a
            WHERE a.error_type = 'SWRVE'
            GROUP BY a.code, CASE WHEN a.code IS NULL THEN a.message END
            ORDER BY count(*) DESC, a.code LIMIT $2
            "#,
            EXAMINED_MAX,
            KINDS_MAX,
        )
        .fetch_all(&self.pool)
        .await?)
    }
}

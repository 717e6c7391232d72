//! How far behind the lane is. Each number is read from the head of an index, so asking stays cheap with any backlog.

use chrono::{DateTime, Utc};

use crate::{Error, Store};

/// The oldest thing that waits, by kind. `None`: nothing waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// When the oldest `PENDING` push was accepted.
    pub oldest_pending: Option<DateTime<Utc>>,
    /// When the longest overdue `SCHEDULED` or `RETRY` push came due; it may lie ahead.
    pub oldest_due: Option<DateTime<Utc>>,
    /// When the first lease of an `IN_MEMORY` push ends; it may lie ahead.
    pub first_lease_end: Option<DateTime<Utc>>,
}

impl Store {
    /// Looks at what has waited longest.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails.
    pub async fn backlog(&self) -> Result<Backlog, Error> {
        let backlog = sqlx::query_as!(
            Backlog,
            r#"
            SELECT
                (SELECT created_at FROM push_notifications WHERE status = 'PENDING'
                 ORDER BY id LIMIT 1) AS oldest_pending,
                (SELECT next_attempt_at FROM push_notifications WHERE status IN ('SCHEDULED', 'RETRY')
                 ORDER BY next_attempt_at, id LIMIT 1) AS oldest_due,
                (SELECT leased_until FROM push_notifications WHERE status = 'IN_MEMORY'
                 ORDER BY leased_until LIMIT 1) AS first_lease_end
            "#
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(backlog)
    }
}

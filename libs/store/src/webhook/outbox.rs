//! The outbox of e-mails as a whole: how much waits in it. Single mails are in `emails`.

use chrono::{DateTime, Utc};

use crate::read::Count;
use crate::{Error, Store};

/// What the outbox holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outbox {
    /// Mails that are not sent yet.
    pub waiting: u64,
    /// When the longest overdue of them came due; it may lie ahead.
    pub oldest_due: Option<DateTime<Utc>>,
}

impl Store {
    /// Looks at what waits to be sent.
    pub async fn outbox(&self) -> Result<Outbox, Error> {
        Ok(sqlx::query_as!(
            Outbox,
            r#"
            SELECT (SELECT count(*) FROM emails WHERE status = 'PENDING')
                       + (SELECT count(*) FROM emails WHERE status = 'SENDING') AS "waiting!: Count",
                   (SELECT next_attempt_at FROM emails WHERE status = 'PENDING'
                    ORDER BY next_attempt_at, id LIMIT 1) AS oldest_due
            "#,
        )
        .fetch_one(&self.pool)
        .await?)
    }
}

//! The outbox of e-mails as a whole: how much waits in it, and what it forgets. Single mails are in `emails`.

use chrono::{DateTime, Utc};

use crate::{Cutoff, Error, Store};

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
        let row = sqlx::query!(
            r#"
            SELECT (SELECT count(*) FROM emails WHERE status = 'PENDING') AS "pending!",
                   (SELECT count(*) FROM emails WHERE status = 'SENDING') AS "sending!",
                   (SELECT next_attempt_at FROM emails WHERE status = 'PENDING'
                    ORDER BY next_attempt_at, id LIMIT 1) AS oldest_due
            "#,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(Outbox {
            waiting: row.pending.unsigned_abs() + row.sending.unsigned_abs(),
            oldest_due: row.oldest_due,
        })
    }

    /// Forgets at most `limit` mails that ended before the cutoff, sent or not; returns how many.
    pub async fn forget_emails(&self, cutoff: Cutoff, limit: u32) -> Result<u64, Error> {
        let forgotten = sqlx::query!(
            r#"
            DELETE FROM emails WHERE id IN (
                SELECT id FROM emails WHERE finished_at < $1 ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)
            "#,
            cutoff.before(),
            i64::from(limit),
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }

    /// Ends at most `limit` mails as `FAILED` that have waited since before the cutoff, for where no mail server is configured:
    /// else the mailer ends them. Returns how many.
    pub async fn end_unsent_emails(&self, cutoff: Cutoff, limit: u32) -> Result<u64, Error> {
        let ended = sqlx::query!(
            r#"
            UPDATE emails
            SET status = 'FAILED', next_attempt_at = NULL, finished_at = now(),
                last_error = 'it waited for too long, and no mail server is configured'
            WHERE id IN (
                SELECT id FROM emails WHERE status = 'PENDING' AND created_at < $1
                ORDER BY next_attempt_at LIMIT $2 FOR UPDATE SKIP LOCKED)
            "#,
            cutoff.before(),
            i64::from(limit),
        )
        .execute(&self.pool)
        .await?;
        Ok(ended.rows_affected())
    }
}

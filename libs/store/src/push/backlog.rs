//! How far behind the push lane is.

use crate::{Backlog, Error, Store};

impl Store {
    /// Looks at what has waited longest. A PENDING push waits since when [`Store::push_overdue`] says.
    pub async fn backlog(&self) -> Result<Backlog, Error> {
        Ok(sqlx::query_as!(
            Backlog,
            r#"
            SELECT
                (SELECT CASE WHEN cron_expression IS NULL AND attempts = 0 AND reason IS NULL
                             THEN created_at ELSE updated_at END
                 FROM push_notifications WHERE status = 'PENDING'
                 ORDER BY id LIMIT 1) AS oldest_pending,
                (SELECT next_attempt_at FROM push_notifications WHERE status IN ('SCHEDULED', 'RETRY')
                 ORDER BY next_attempt_at, id LIMIT 1) AS oldest_due,
                (SELECT leased_until FROM push_notifications WHERE status = 'IN_MEMORY'
                 ORDER BY leased_until LIMIT 1) AS first_lease_end
            "#
        )
        .fetch_one(&self.pool)
        .await?)
    }
}

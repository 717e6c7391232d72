//! How many dead letters are open. It reads totals, so it costs as much as there are kinds of failures.

use crate::{DeadLetterLane, Error, Store};

impl Store {
    /// Counts the dead letters of each lane that are neither replayed nor discarded.
    pub async fn count_open_dead_letters(&self) -> Result<[(DeadLetterLane, u64); 2], Error> {
        let row = sqlx::query!(
            r#"
            SELECT coalesce(sum(letters) FILTER (WHERE lane = 'push'), 0)::bigint AS "push!",
                   coalesce(sum(letters) FILTER (WHERE lane = 'reseller'), 0)::bigint AS "reseller!"
            FROM dead_letter_totals WHERE state = 'OPEN'
            "#,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok([
            (DeadLetterLane::Push, u64::try_from(row.push).unwrap_or(0)),
            (DeadLetterLane::Reseller, u64::try_from(row.reseller).unwrap_or(0)),
        ])
    }
}

//! What the last look at the system found, and since when it is so.

use chrono::{DateTime, TimeDelta, Utc};

use crate::{Error, Store};

/// After how long without a look it is not known any more what was in between.
pub const LOOKS_APART_MAX: TimeDelta = TimeDelta::seconds(90);

/// What the last look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastLook {
    /// Whether there was nothing to do.
    pub healthy: bool,
    /// Since when each look has found the same.
    pub since: DateTime<Utc>,
    /// When it was.
    pub looked_at: DateTime<Utc>,
}

impl Store {
    /// What the last look found; nothing before the first.
    pub async fn last_look(&self) -> Result<Option<LastLook>, Error> {
        Ok(
            sqlx::query_as!(LastLook, "SELECT healthy, since, looked_at FROM last_look")
                .fetch_optional(&self.pool)
                .await?,
        )
    }

    /// Notes what a look has found. One that was made before the last is not noted, unless the last is so far ahead that its clock was wrong.
    pub async fn note_look(&self, healthy: bool, at: DateTime<Utc>) -> Result<(), Error> {
        sqlx::query!(
            r#"
            INSERT INTO last_look AS l (healthy, since, looked_at) VALUES ($1, $2, $2)
            ON CONFLICT (one) DO UPDATE
            SET healthy = excluded.healthy, looked_at = excluded.looked_at,
                since = CASE WHEN l.healthy = excluded.healthy AND l.looked_at BETWEEN $3 AND $2 THEN l.since ELSE excluded.since END
            WHERE l.looked_at <= excluded.looked_at OR l.looked_at > $4
            "#,
            healthy,
            at,
            at - LOOKS_APART_MAX,
            at + LOOKS_APART_MAX,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}

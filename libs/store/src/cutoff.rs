//! From when back something is old. What is dropped, expired or forgotten cannot be brought back, so the clock of one process
//! must not decide about it: the database's bounds it. Nothing here deletes anything; what does takes a [`Cutoff`].

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;

use crate::{Error, Store, interval};

/// What is from before this time is of an age, by the clock of a process and by that of the database. Only [`Store::cutoff`]
/// makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutoff {
    before: DateTime<Utc>,
    ahead: TimeDelta,
}

impl Cutoff {
    /// What is older is old by both clocks.
    pub fn before(self) -> DateTime<Utc> {
        self.before
    }

    /// How far the clock of the process was ahead of the database's, save for the time that the question took.
    pub fn clock_ahead(self) -> TimeDelta {
        self.ahead
    }
}

/// The time `at`, or the database's present where that is earlier: what a process writes as a time is none that others have yet to
/// reach.
pub(crate) async fn not_after_now(
    connection: &mut PgConnection,
    at: DateTime<Utc>,
) -> Result<DateTime<Utc>, Error> {
    Ok(sqlx::query_scalar!(
        r#"SELECT least($1::timestamptz, clock_timestamp()) AS "at!: DateTime<Utc>""#,
        at
    )
    .fetch_one(connection)
    .await?)
}

impl Store {
    /// The time before which everything is older than `age`, now that the process's clock shows `now`: the clock that is behind
    /// decides.
    pub async fn cutoff(&self, now: DateTime<Utc>, age: Duration) -> Result<Cutoff, Error> {
        let row = sqlx::query!(
            r#"
            SELECT least($1::timestamptz, t.now) - $2::interval AS "before!: DateTime<Utc>", t.now AS "database!: DateTime<Utc>"
            FROM (SELECT clock_timestamp() AS now) AS t
            "#,
            now,
            interval(age),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(Cutoff {
            before: row.before,
            ahead: now - row.database,
        })
    }
}

//! Pushes whose time has come and whose sending window has closed meanwhile: they wait for its next opening without having been
//! queued and claimed. When that is, is for `domain` to say; a claimed push is given back by `release`.

use chrono::{DateTime, Utc};
use domain::push::PushId;

use crate::{Error, Store, column};

/// A push whose time has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuePush {
    /// The push.
    pub id: PushId,
    /// When it may be sent; `None` is always.
    pub cron_expression: Option<String>,
}

/// A push that is to wait longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deferral {
    /// The push.
    pub id: PushId,
    /// Until then.
    pub to: DateTime<Utc>,
}

impl Store {
    /// The first `limit` of the `SCHEDULED` and `RETRY` pushes whose time had come at `at`, in the order of their promotion.
    pub async fn due_pushes(&self, at: DateTime<Utc>, limit: u32) -> Result<Vec<DuePush>, Error> {
        Ok(sqlx::query_as!(
            DuePush,
            r#"
            SELECT id, cron_expression FROM push_notifications
            WHERE status IN ('SCHEDULED', 'RETRY') AND next_attempt_at <= $1
            ORDER BY next_attempt_at, id LIMIT $2
            "#,
            at,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Lets those of them wait longer that still wait and whose time had come at `at`; returns how many. Their status stays.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then all stay as they are.
    pub async fn defer_due_pushes(&self, at: DateTime<Utc>, deferrals: &[Deferral]) -> Result<u64, Error> {
        let deferred = sqlx::query!(
            r#"
            WITH waiting AS (
                SELECT p.id, i.deferred_to
                FROM UNNEST($1::uuid[], $2::timestamptz[]) AS i(id, deferred_to) JOIN push_notifications p ON p.id = i.id
                -- Only what waits for a time has one. Naming its status would let the planner read everything that does.
                WHERE p.next_attempt_at <= $3
                ORDER BY p.id FOR UPDATE OF p SKIP LOCKED)
            UPDATE push_notifications p SET next_attempt_at = w.deferred_to, updated_at = now()
            FROM waiting w WHERE p.id = w.id
            "#,
            &column(deferrals, |deferral| deferral.id.uuid()),
            &column(deferrals, |deferral| deferral.to),
            at,
        )
        .execute(&self.pool)
        .await?;
        Ok(deferred.rows_affected())
    }
}

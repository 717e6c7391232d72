//! Giving claimed pushes back without having tried to send them: the attempt is taken back as if it had never begun.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::push::PushId;
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::{Error, Store, column, interval};

/// One push to give back.
#[derive(Debug, Clone, Copy)]
pub struct Release {
    /// The push.
    pub id: PushId,
    /// The token of the claim; a release with an old one changes nothing.
    pub lease_token: Uuid,
    /// When its sending window opens again, for one that missed it (it becomes `SCHEDULED`); otherwise it goes back to
    /// the queue, where its message must be as well.
    pub deferred_to: Option<DateTime<Utc>>,
}

impl Store {
    /// Gives a batch back; returns the pushes that were. One that is missing had lost its lease.
    pub async fn release_pushes(
        &self,
        releases: &[Release],
        queue_lease: Duration,
    ) -> Result<HashSet<PushId>, Error> {
        release_pushes(&self.pool, releases, queue_lease).await
    }
}

pub(crate) async fn release_pushes(
    executor: impl PgExecutor<'_>,
    releases: &[Release],
    queue_lease: Duration,
) -> Result<HashSet<PushId>, Error> {
    let released = sqlx::query_scalar!(
        r#"
        WITH input AS (
            SELECT * FROM UNNEST($1::uuid[], $2::uuid[], $3::timestamptz[]) AS i(id, token, deferred_to)),
        claimed AS (
            SELECT p.id, p.attempts, i.deferred_to FROM push_notifications p JOIN input i ON p.id = i.id
            -- That it is IN_MEMORY follows; saying so would let the planner read everything that is leased.
            WHERE p.lease_token = i.token
            ORDER BY p.id
            FOR UPDATE OF p),
        released AS (
            UPDATE push_notifications p
            SET status = CASE WHEN c.deferred_to IS NULL THEN 'IN_MEMORY' ELSE 'SCHEDULED' END,
                leased_until = CASE WHEN c.deferred_to IS NULL THEN now() + $4::interval END,
                next_attempt_at = c.deferred_to, attempts = c.attempts - 1, lease_token = NULL, updated_at = now()
            FROM claimed c WHERE p.id = c.id
            RETURNING p.id),
        attempt AS (
            DELETE FROM send_attempts a USING claimed c
            WHERE a.push_notification_id = c.id AND a.number = c.attempts AND a.status = 'IN_PROCESS')
        SELECT id AS "id!" FROM released
        "#,
        &column(releases, |r| r.id.uuid()),
        &column(releases, |r| r.lease_token),
        &column(releases, |r| r.deferred_to) as &[Option<DateTime<Utc>>],
        interval(queue_lease),
    )
    .fetch_all(executor)
    .await?;
    Ok(released.into_iter().map(PushId::from).collect())
}

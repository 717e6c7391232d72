//! Giving claimed notifications back without having tried to deliver them: the attempt is taken back as if it had never
//! begun. A place in a quota that it has been given stays its own.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use domain::notification::NotificationId;
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::{Error, Store};

/// One notification to give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotificationRelease {
    /// The notification.
    pub id: NotificationId,
    /// The token of the claim; a release with an old one changes nothing.
    pub lease_token: Uuid,
    /// Not to be claimed again before; `None`: at once.
    pub postponed_to: Option<DateTime<Utc>>,
}

impl Store {
    /// Gives a batch back at the time `at`; returns the notifications that were. One that is missing had lost its lease.
    /// Their messages have nothing more to say.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then nothing is given back.
    pub async fn release_notifications(
        &self,
        releases: &[NotificationRelease],
        at: DateTime<Utc>,
    ) -> Result<HashSet<NotificationId>, Error> {
        release_notifications(&self.pool, releases, at).await
    }
}

pub(crate) async fn release_notifications(
    executor: impl PgExecutor<'_>,
    releases: &[NotificationRelease],
    at: DateTime<Utc>,
) -> Result<HashSet<NotificationId>, Error> {
    let released = sqlx::query_scalar!(
        r#"
        WITH input AS (
            SELECT * FROM UNNEST($1::uuid[], $2::uuid[], $3::timestamptz[]) AS i(id, token, postponed_to)),
        claimed AS (
            SELECT n.id, n.subscription_id, n.attempts, i.postponed_to FROM notifications n JOIN input i ON n.id = i.id
            -- That it is IN_MEMORY follows; saying so would let the planner read everything that is leased.
            WHERE n.lease_token = i.token
            ORDER BY n.id
            FOR UPDATE OF n),
        released AS (
            UPDATE notifications n
            SET status = CASE WHEN c.attempts > 1 THEN 'RETRY' WHEN c.postponed_to IS NULL THEN 'PENDING'
                              ELSE 'SCHEDULED' END,
                next_attempt_at = CASE WHEN c.attempts > 1 THEN coalesce(c.postponed_to, $4)
                                       WHEN c.postponed_to IS NOT NULL THEN n.created_at END,
                reason = CASE WHEN c.postponed_to IS NOT NULL THEN 'POSTPONED' END,
                attempts = c.attempts - 1, lease_token = NULL, leased_until = NULL, updated_at = $4
            FROM claimed c WHERE n.id = c.id
            RETURNING n.id),
        -- A first attempt waits in the line of its subscription, which is looked at when the time has come.
        in_line AS (
            UPDATE subscription_budgets b SET release_at = coalesce(b.release_at, now() + p.delay)
            FROM (SELECT subscription_id, min(postponed_to) - $4::timestamptz AS delay FROM claimed
                  WHERE postponed_to IS NOT NULL AND attempts = 1 GROUP BY subscription_id) AS p
            WHERE b.subscription_id = p.subscription_id),
        attempt AS (
            DELETE FROM delivery_attempts a USING claimed c
            WHERE a.notification_id = c.id AND a.number = c.attempts AND a.status = 'IN_PROCESS')
        SELECT id AS "id!" FROM released
        "#,
        &releases.iter().map(|r| r.id.uuid()).collect::<Vec<_>>(),
        &releases.iter().map(|r| r.lease_token).collect::<Vec<_>>(),
        &releases.iter().map(|r| r.postponed_to).collect::<Vec<_>>() as &[Option<DateTime<Utc>>],
        at,
    )
    .fetch_all(executor)
    .await?;
    Ok(released.into_iter().map(NotificationId::from).collect())
}

//! Giving claimed notifications back without having tried to deliver them: the attempt is taken back as if it had never
//! begun. What was charged for it stays charged, unless it is put off.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use domain::notification::NotificationId;
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::{Error, Store, column};

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
    let released = sqlx::query_file_scalar!(
        "queries/webhook/release_notifications.sql",
        &column(releases, |r| r.id.uuid()),
        &column(releases, |r| r.lease_token),
        &column(releases, |r| r.postponed_to) as &[Option<DateTime<Utc>>],
        at,
    )
    .fetch_all(executor)
    .await?;
    Ok(released.into_iter().map(NotificationId::from).collect())
}

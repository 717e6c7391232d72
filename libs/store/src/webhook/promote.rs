//! Promotion: taking notifications that wait in the database and marking them as handed to the broker, before they are.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::notification::NotificationId;
use uuid::Uuid;

use super::outages::WITHHELD_FOR;
use super::spill::LEFT_TO_OTHERS;
use crate::{Error, Store, interval};

/// A notification whose message is to be published now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromotedNotification {
    /// The notification.
    pub id: Uuid,
    /// To whom it goes.
    pub subscription_id: Uuid,
}

/// What was promoted at once.
#[derive(Debug, Default)]
pub struct Promoted {
    /// Those that have waited longest first.
    pub notifications: Vec<PromotedNotification>,
    /// After which subscription the next statement goes on; none when this one has come to the last that has something waiting.
    pub next: Option<Uuid>,
}

/// Subscriptions that a statement looks at: so that ten thousand with something waiting take no longer than these.
const SUBSCRIPTIONS: i32 = 500;

/// Runs one of the two statements that promote.
macro_rules! promote {
    ($store:ident, $statement:literal, $at:ident, $after:ident, $share:ident, $limit:ident, $queue_lease:ident) => {{
        let rows = sqlx::query_file!(
            $statement,
            $at,
            i64::from($share),
            i64::from($limit),
            interval($queue_lease),
            interval(LEFT_TO_OTHERS),
            interval(WITHHELD_FOR),
            $after.unwrap_or_default(),
            SUBSCRIPTIONS,
        );
        let mut promoted = Promoted::default();
        for row in rows.fetch_all(&$store.pool).await? {
            match (row.id, row.subscription_id) {
                (Some(id), Some(subscription_id)) => {
                    promoted
                        .notifications
                        .push(PromotedNotification { id, subscription_id });
                }
                (_, next) => promoted.next = next,
            }
        }
        Ok(promoted)
    }};
}

impl Store {
    /// Promotes the oldest waiting first attempts of each subscription that may be sent to, at most `share` of each.
    /// However much one subscription has waiting, the others get as much as it does. A subscription that had been
    /// sidelined a moment ago, or gets nothing but probes, is passed over. Looks at some hundred subscriptions, by their ids from the one
    /// after `after`; [`Promoted::next`] says where to go on.
    pub async fn promote_first_attempts(
        &self,
        at: DateTime<Utc>,
        after: Option<Uuid>,
        share: u32,
        limit: u32,
        queue_lease: Duration,
    ) -> Result<Promoted, Error> {
        promote!(
            self,
            "queries/webhook/promote_first_attempts.sql",
            at,
            after,
            share,
            limit,
            queue_lease
        )
    }

    /// Promotes the longest overdue retries of each subscription that may be sent to, at most `share` of each, as
    /// [`Store::promote_first_attempts`] does.
    pub async fn promote_retries(
        &self,
        at: DateTime<Utc>,
        after: Option<Uuid>,
        share: u32,
        limit: u32,
        queue_lease: Duration,
    ) -> Result<Promoted, Error> {
        promote!(
            self,
            "queries/webhook/promote_retries.sql",
            at,
            after,
            share,
            limit,
            queue_lease
        )
    }

    /// The longest overdue retries that wait for a subscription at the time `at`, at most `limit`.
    pub async fn waiting_retries(
        &self,
        subscription: Uuid,
        at: DateTime<Utc>,
        limit: u32,
    ) -> Result<Vec<NotificationId>, Error> {
        let ids = sqlx::query_scalar!(
            r#"
            SELECT id FROM notifications WHERE subscription_id = $1 AND status = 'RETRY' AND next_attempt_at <= $2
            ORDER BY next_attempt_at, id LIMIT $3
            "#,
            subscription,
            at,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(ids.into_iter().map(NotificationId::from).collect())
    }

    /// The oldest first attempts that wait for a subscription, at most `limit`.
    pub async fn waiting_first_attempts(
        &self,
        subscription: Uuid,
        limit: u32,
    ) -> Result<Vec<NotificationId>, Error> {
        let ids = sqlx::query_scalar!(
            "SELECT id FROM notifications WHERE subscription_id = $1 AND status = 'PENDING' ORDER BY id LIMIT $2",
            subscription,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(ids.into_iter().map(NotificationId::from).collect())
    }
}

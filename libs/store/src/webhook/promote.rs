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

impl Store {
    /// Promotes the oldest waiting first attempts of each subscription that may be sent to, at most `share` of each.
    /// However much one subscription has waiting, the others get as much as it does. A subscription that had been
    /// sidelined a moment ago, or gets nothing but probes, is passed over.
    pub async fn promote_first_attempts(
        &self,
        at: DateTime<Utc>,
        share: u32,
        limit: u32,
        queue_lease: Duration,
    ) -> Result<Vec<PromotedNotification>, Error> {
        let rows = sqlx::query_as!(
            PromotedNotification,
            r#"
            WITH RECURSIVE waiting AS (
                (SELECT subscription_id FROM notifications WHERE status = 'PENDING'
                 ORDER BY subscription_id LIMIT 1)
                UNION ALL
                SELECT (SELECT n.subscription_id FROM notifications n
                        WHERE n.status = 'PENDING' AND n.subscription_id > w.subscription_id
                        ORDER BY n.subscription_id LIMIT 1)
                FROM waiting w WHERE w.subscription_id IS NOT NULL),
            sendable AS (
                SELECT s.id FROM waiting w JOIN subscriptions s ON s.id = w.subscription_id
                WHERE s.state IN ('ACTIVE', 'DEGRADED') AND NOT s.suspended AND s.deleted_at IS NULL
                  AND NOT EXISTS (SELECT FROM subscription_sidelines l
                                  WHERE l.subscription_id = s.id AND l.lane = 'first'
                                    AND (l.until > now() AND l.until <= now() + $5::interval
                                         OR l.outage_until BETWEEN now() AND now() + $6::interval))),
            oldest AS (
                SELECT o.id, o.status, count(*) OVER (PARTITION BY s.id) >= $2 AS more,
                       row_number() OVER (PARTITION BY s.id ORDER BY o.id) AS rank
                FROM sendable s
                CROSS JOIN LATERAL (
                    SELECT n.id, n.status FROM notifications n
                    WHERE n.subscription_id = s.id AND n.status = 'PENDING' ORDER BY n.id LIMIT $2) o
                -- Everybody's first one before anybody's second.
                ORDER BY rank, o.id LIMIT $3),
            locked AS (
                SELECT n.id, o.more FROM oldest o
                -- Not the name of the status: it would let the planner read all that wait instead of these by id.
                JOIN notifications n ON n.id = o.id AND n.status = o.status
                FOR UPDATE OF n SKIP LOCKED),
            promoted AS (
                UPDATE notifications n
                SET status = 'IN_MEMORY', leased_until = now() + $4::interval, updated_at = $1,
                    reason = CASE WHEN l.more THEN 'BACKLOG' END
                FROM locked l WHERE n.id = l.id
                RETURNING n.id, n.subscription_id)
            SELECT id AS "id!", subscription_id AS "subscription_id!" FROM promoted ORDER BY id
            "#,
            at,
            i64::from(share),
            i64::from(limit),
            interval(queue_lease),
            interval(LEFT_TO_OTHERS),
            interval(WITHHELD_FOR),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows)
    }

    /// Promotes the longest overdue retries of each subscription that may be sent to, at most `share` of each, as
    /// [`Store::promote_first_attempts`] does.
    pub async fn promote_retries(
        &self,
        at: DateTime<Utc>,
        share: u32,
        limit: u32,
        queue_lease: Duration,
    ) -> Result<Vec<PromotedNotification>, Error> {
        let rows = sqlx::query_as!(
            PromotedNotification,
            r#"
            WITH RECURSIVE waiting AS (
                (SELECT subscription_id FROM notifications WHERE status = 'RETRY'
                 ORDER BY subscription_id LIMIT 1)
                UNION ALL
                SELECT (SELECT n.subscription_id FROM notifications n
                        WHERE n.status = 'RETRY' AND n.subscription_id > w.subscription_id
                        ORDER BY n.subscription_id LIMIT 1)
                FROM waiting w WHERE w.subscription_id IS NOT NULL),
            sendable AS (
                SELECT s.id FROM waiting w JOIN subscriptions s ON s.id = w.subscription_id
                WHERE s.state IN ('ACTIVE', 'DEGRADED') AND NOT s.suspended AND s.deleted_at IS NULL
                  AND NOT EXISTS (SELECT FROM subscription_sidelines l
                                  WHERE l.subscription_id = s.id AND l.lane = 'retry'
                                    AND (l.until > now() AND l.until <= now() + $5::interval
                                         OR l.outage_until BETWEEN now() AND now() + $6::interval))),
            overdue AS (
                SELECT o.id, o.status, o.next_attempt_at,
                       count(*) OVER (PARTITION BY s.id) >= $2 AS more,
                       row_number() OVER (PARTITION BY s.id ORDER BY o.next_attempt_at, o.id) AS rank
                FROM sendable s
                CROSS JOIN LATERAL (
                    SELECT n.id, n.status, n.next_attempt_at FROM notifications n
                    WHERE n.subscription_id = s.id AND n.status = 'RETRY'
                      AND n.next_attempt_at <= $1
                    ORDER BY n.next_attempt_at, n.id LIMIT $2) o
                ORDER BY rank, o.next_attempt_at, o.id LIMIT $3),
            locked AS (
                SELECT n.id, o.more, o.next_attempt_at FROM overdue o
                -- As above.
                JOIN notifications n ON n.id = o.id AND n.status = o.status
                FOR UPDATE OF n SKIP LOCKED),
            promoted AS (
                UPDATE notifications n
                SET status = 'IN_MEMORY', leased_until = now() + $4::interval, next_attempt_at = NULL, updated_at = $1,
                    reason = CASE WHEN l.more THEN 'BACKLOG' END
                FROM locked l WHERE n.id = l.id
                RETURNING n.id, n.subscription_id, l.next_attempt_at)
            SELECT id AS "id!", subscription_id AS "subscription_id!" FROM promoted ORDER BY next_attempt_at, id
            "#,
            at,
            i64::from(share),
            i64::from(limit),
            interval(queue_lease),
            interval(LEFT_TO_OTHERS),
            interval(WITHHELD_FOR),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows)
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

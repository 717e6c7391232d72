//! Notifications on their way between the database and the queues: promoted when their time has come, sidelined when
//! there is no room for them, rescued when they were lost.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::notification::NotificationId;
use domain::reason::NotificationReason;
use uuid::Uuid;

use super::outages::WITHHELD_FOR;
use crate::{Error, Store, interval};

/// A notification whose message is to be published now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromotedNotification {
    /// The notification.
    pub id: Uuid,
    /// To whom it goes.
    pub subscription_id: Uuid,
}

/// Why a notification is sidelined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sidelined {
    /// The broker did not take its message.
    NotEnqueued,
    /// The engine that got its message has no room for more of its subscription, and comes back for it.
    Busy,
    /// Its subscription gets nothing but probes, from the engine that got its message, which comes back for it.
    Withheld,
}

impl Sidelined {
    fn reason(self) -> Option<NotificationReason> {
        match self {
            Self::NotEnqueued => None,
            Self::Busy => Some(NotificationReason::Busy),
            Self::Withheld => Some(NotificationReason::Withheld),
        }
    }
}

/// What one pass of the rescuer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RescuedNotifications {
    /// Those that wait for their first attempt again.
    pub pending: u64,
    /// Those that wait for another attempt.
    pub retry: u64,
    /// Those that had used up their attempts.
    pub given_up: u64,
}

/// How long what waits for a subscription is left to the engine that sidelined some of it, by the clock of the database. A longer time was
/// not written by it and holds nothing up.
const LEFT_TO_OTHERS: Duration = Duration::from_secs(5);
/// Retries that the broker did not take come back after this time and up to as much again.
const RETRY_LATER: Duration = Duration::from_secs(5);

impl Store {
    /// Promotes the oldest waiting first attempts of each subscription that may be sent to, at most `share` of each.
    /// However much one subscription has waiting, the others get as much as it does. A subscription that had been
    /// sidelined a moment ago, or gets nothing but probes, is passed over.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then nothing is promoted.
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
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then nothing is promoted.
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

    /// Takes those of `ids` that are queued and not claimed out of the queue: they wait in the database again. Returns
    /// how many.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then they are rescued when their lease runs out.
    pub async fn sideline_notifications(
        &self,
        ids: &[NotificationId],
        why: Sidelined,
        at: DateTime<Utc>,
    ) -> Result<u64, Error> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
        let reason = why.reason();
        let sidelined = sqlx::query!(
            r#"
            WITH queued AS (
                SELECT n.id, n.subscription_id, n.attempts > 0 AS tried
                FROM UNNEST($1::uuid[]) AS i(id) JOIN notifications n ON n.id = i.id
                -- Leased is IN_MEMORY. Saying that would let the planner read everything that is.
                WHERE n.leased_until IS NOT NULL AND n.lease_token IS NULL
                ORDER BY n.id FOR UPDATE OF n),
            noted AS (
                INSERT INTO subscription_sidelines AS l (subscription_id, lane, until)
                SELECT DISTINCT subscription_id, CASE WHEN tried THEN 'retry' ELSE 'first' END,
                       now() + $5::interval
                FROM queued WHERE $3 ORDER BY 1, 2
                ON CONFLICT (subscription_id, lane) DO UPDATE SET until = excluded.until)
            UPDATE notifications n
            SET status = CASE WHEN q.tried THEN 'RETRY' ELSE 'PENDING' END, leased_until = NULL,
                next_attempt_at = CASE WHEN q.tried AND $3 THEN $2::timestamptz
                                       WHEN q.tried THEN $2::timestamptz + $4::interval * (1 + random()) END,
                reason = $6, updated_at = $2
            FROM queued q WHERE n.id = q.id
            "#,
            &ids,
            at,
            why != Sidelined::NotEnqueued,
            interval(RETRY_LATER),
            interval(LEFT_TO_OTHERS),
            reason.as_ref().map(NotificationReason::as_str),
        )
        .execute(&self.pool)
        .await?;
        Ok(sidelined.rows_affected())
    }

    /// The longest overdue retries that wait for a subscription at the time `at`, at most `limit`.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails.
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
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails.
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

    /// Rescues at most `limit` notifications whose lease ran out, by the clock of the database. The attempt of a claimed
    /// one ends as an error of unknown outcome; one that has had its retries is given up.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then nothing is rescued.
    pub async fn rescue_notifications(
        &self,
        at: DateTime<Utc>,
        limit: u32,
        max_retries: u32,
    ) -> Result<RescuedNotifications, Error> {
        let rescued = sqlx::query!(
            r#"
            WITH lost AS (
                SELECT id, lease_token IS NOT NULL AS claimed, attempts,
                       CASE WHEN lease_token IS NOT NULL AND attempts - resent_after > $2 THEN 'GIVEN_UP'
                            WHEN attempts > 0 THEN 'RETRY' ELSE 'PENDING' END AS next
                FROM notifications
                WHERE status = 'IN_MEMORY' AND leased_until < now()
                ORDER BY leased_until LIMIT $1 FOR UPDATE SKIP LOCKED),
            rescued AS (
                UPDATE notifications n
                SET status = l.next, lease_token = NULL, leased_until = NULL, slot_at = NULL, updated_at = $3,
                    next_attempt_at = CASE WHEN l.next = 'RETRY' THEN $3::timestamptz END,
                    finished_at = CASE WHEN l.next = 'GIVEN_UP' THEN $3::timestamptz END,
                    reason = CASE WHEN l.claimed THEN 'delivery/lease-lost' END
                FROM lost l WHERE n.id = l.id
                RETURNING n.id, n.status, n.attempts, n.subscription_id, n.reseller_id, n.event_type),
            attempt AS (
                UPDATE delivery_attempts a
                SET status = 'ERROR', error_type = 'OTHER', fingerprint = 'delivery/lease-lost',
                    error = 'the lease ran out before an outcome was recorded; the notification may have been delivered'
                FROM lost l
                WHERE l.claimed AND a.notification_id = l.id AND a.number = l.attempts AND a.status = 'IN_PROCESS'),
            dead AS (
                INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, subscription_id, reseller_id,
                                          event_type, target, attempts, error_type, detail)
                SELECT 'reseller', 'GIVEN_UP', 'delivery/lease-lost', r.id, r.subscription_id, r.reseller_id,
                       r.event_type, coalesce((SELECT endpoint_of(a.url) FROM delivery_attempts a
                                               WHERE a.notification_id = r.id AND a.number = r.attempts), ''), r.attempts,
                       'OTHER', 'the lease of the last allowed attempt ran out before an outcome was recorded'
                FROM rescued r WHERE r.status = 'GIVEN_UP'),
            exhausted AS (
                SELECT subscription_id, count(*) AS count, min(event_type) AS event_type
                FROM rescued WHERE status = 'GIVEN_UP' GROUP BY subscription_id),
            mail AS (
                INSERT INTO emails AS e (id, kind, subscription_id, recipient, data, occurrences, next_attempt_at,
                                         created_at)
                SELECT gen_random_uuid(), 'RETRIES_EXHAUSTED', s.id, s.email,
                       jsonb_build_object('url', s.url, 'description', s.description, 'resellerId', s.reseller_id,
                                          'eventType', x.event_type, 'error', 'the outcome of the last attempt is not known',
                                          'since', $3::timestamptz),
                       x.count,
                       greatest($3, (SELECT coalesce(l.finished_at, $3) + interval '1 hour' FROM emails l
                                     WHERE l.subscription_id = s.id AND l.kind = 'RETRIES_EXHAUSTED'
                                       AND l.status <> 'PENDING'
                                     ORDER BY l.created_at DESC LIMIT 1)),
                       $3
                FROM exhausted x JOIN subscriptions s ON s.id = x.subscription_id
                WHERE s.deleted_at IS NULL
                ORDER BY s.id
                ON CONFLICT (subscription_id) WHERE kind = 'RETRIES_EXHAUSTED' AND status = 'PENDING' DO UPDATE
                SET occurrences = e.occurrences + excluded.occurrences, recipient = excluded.recipient,
                    data = excluded.data || jsonb_build_object('since', e.data -> 'since'),
                    created_at = greatest(e.created_at, excluded.created_at))
            SELECT count(*) FILTER (WHERE status = 'PENDING') AS "pending!",
                   count(*) FILTER (WHERE status = 'RETRY') AS "retry!",
                   count(*) FILTER (WHERE status = 'GIVEN_UP') AS "given_up!"
            FROM rescued
            "#,
            i64::from(limit),
            i32::try_from(max_retries).unwrap_or(i32::MAX),
            at,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(RescuedNotifications {
            pending: rescued.pending.unsigned_abs(),
            retry: rescued.retry.unsigned_abs(),
            given_up: rescued.given_up.unsigned_abs(),
        })
    }
}

//! What a reseller sees of all of its subscriptions at once: a statement for each kind of fact, however many subscriptions there are. Whose
//! they are, is for the caller to know.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::notification::NotificationStatus;
use domain::quota::Budget;
use domain::reason::NotificationReason;
use uuid::Uuid;

use crate::read::{Count, Name, Nullable};
use crate::{Error, Store, column};

/// Most notifications of a subscription that are counted in one status.
pub const WAITING_COUNTED_MAX: u32 = 1_000;

/// Most notifications of a subscription that are tried again and looked at for the newest failed attempt.
const FAILING_LOOKED_MAX: i64 = 1_000;

/// What of a subscription waits for the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Whose.
    pub subscription: Uuid,
    /// `SCHEDULED`, `PENDING` or `RETRY`.
    pub status: NotificationStatus,
    /// What is stored as its reason; none of what is tried again, whose reason is its last failure.
    pub reason: Option<NotificationReason>,
    /// How many, of the first [`WAITING_COUNTED_MAX`] in this status.
    pub count: u64,
    /// When the first of them is tried again, for `RETRY`.
    pub next_at: Option<DateTime<Utc>>,
}

/// What came of the newest failed attempt of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestFailure {
    /// What it was answered with; `None` when it had no answer.
    pub answer: Option<u16>,
    /// One of [`domain::notification::ERROR_TYPES`].
    pub error_type: Option<String>,
}

impl Store {
    /// What waits, for each of these subscriptions.
    pub async fn waiting_of(&self, subscriptions: &[Uuid]) -> Result<Vec<Waiting>, Error> {
        Ok(sqlx::query_as!(
            Waiting,
            r#"
            SELECT s.subscription AS "subscription!", w.status AS "status!: Name<_>",
                   w.reason AS "reason!: Nullable<Name<_>>", count(*) AS "count!: Count", min(w.at) AS next_at
            FROM UNNEST($1::uuid[]) AS s(subscription)
            CROSS JOIN LATERAL (
                (SELECT n.status, n.reason, NULL::timestamptz AS at FROM notifications n
                 WHERE n.subscription_id = s.subscription AND n.status = 'SCHEDULED'
                 ORDER BY n.next_attempt_at, n.id LIMIT $2)
                UNION ALL
                (SELECT n.status, n.reason, NULL FROM notifications n
                 WHERE n.subscription_id = s.subscription AND n.status = 'PENDING' ORDER BY n.id LIMIT $2)
                UNION ALL
                (SELECT n.status, NULL, n.next_attempt_at FROM notifications n
                 WHERE n.subscription_id = s.subscription AND n.status = 'RETRY'
                 ORDER BY n.next_attempt_at, n.id LIMIT $2)) AS w
            GROUP BY s.subscription, w.status, w.reason
            ORDER BY s.subscription, w.status, w.reason
            "#,
            subscriptions,
            i64::from(WAITING_COUNTED_MAX),
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// How many failures since `since` of each of these subscriptions a resend or a replay has made good: of the latest [`WAITING_COUNTED_MAX`]
    /// that were sent again, those whose notification is delivered now. Each failure is told by its dead letter, so that one that failed
    /// twice counts twice, as it does among what failed.
    pub async fn delivered_by_resending(
        &self,
        subscriptions: &[Uuid],
        since: DateTime<Utc>,
    ) -> Result<HashMap<Uuid, u64>, Error> {
        if subscriptions.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = sqlx::query!(
            r#"
            SELECT s.subscription AS "subscription!", count(*) AS "count!: Count"
            FROM UNNEST($1::uuid[]) AS s(subscription)
            CROSS JOIN LATERAL (
                SELECT l.notification_id FROM dead_letters l
                WHERE l.state = 'REPLAYED' AND l.subscription_id = s.subscription AND l.created_at >= $2
                  AND l.error_type IS NOT NULL
                ORDER BY l.created_at DESC, l.id DESC LIMIT $3) AS d
            -- One by one along the primary key: a join might read all of the notifications.
            WHERE (SELECT n.status FROM notifications n WHERE n.id = d.notification_id) = 'SENT'
            GROUP BY s.subscription
            "#,
            subscriptions,
            since,
            i64::from(WAITING_COUNTED_MAX),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.subscription, row.count.into()))
            .collect())
    }

    /// What came of the newest failed attempt, for each of these subscriptions that has one since it fails. Found among what is tried again and by
    /// the latest dead letters, each along its index; what is under way at the moment is not looked at.
    pub async fn newest_failures_of(
        &self,
        failing: &[(Uuid, DateTime<Utc>)],
    ) -> Result<HashMap<Uuid, NewestFailure>, Error> {
        if failing.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = sqlx::query!(
            r#"
            SELECT s.subscription AS "subscription!", newest.response_status AS "answer!: Nullable<Count>",
                   newest.error_type AS "error_type?"
            FROM UNNEST($1::uuid[], $2::timestamptz[]) AS s(subscription, since)
            CROSS JOIN LATERAL (
                SELECT a.response_status, a.error_type
                FROM (
                    (SELECT r.id FROM (
                        SELECT n.id, n.updated_at FROM notifications n
                        WHERE n.subscription_id = s.subscription AND n.status = 'RETRY'
                        ORDER BY n.next_attempt_at, n.id LIMIT $3) AS r
                     ORDER BY r.updated_at DESC LIMIT 1)
                    UNION ALL
                    (SELECT l.notification_id FROM dead_letters l
                     WHERE l.state = 'OPEN' AND l.subscription_id = s.subscription AND l.error_type IS NOT NULL
                       AND l.created_at >= s.since - interval '10 seconds'
                     ORDER BY l.created_at DESC, l.id DESC LIMIT 1)
                    UNION ALL
                    (SELECT l.notification_id FROM dead_letters l
                     WHERE l.state = 'REPLAYED' AND l.subscription_id = s.subscription AND l.error_type IS NOT NULL
                       AND l.created_at >= s.since - interval '10 seconds'
                     ORDER BY l.created_at DESC, l.id DESC LIMIT 1)) AS c(id)
                -- One by one along the primary key: a join might read all of the attempts.
                CROSS JOIN LATERAL (
                    SELECT t.started_at, t.millis, t.response_status, t.error_type FROM delivery_attempts t
                    WHERE t.notification_id = c.id AND t.status = 'ERROR' ORDER BY t.number DESC LIMIT 1) AS a
                -- It is noted that an endpoint fails when an attempt has ended, maybe a little later than that did.
                WHERE a.started_at + coalesce(a.millis, 0) * interval '1 millisecond' >= s.since - interval '10 seconds'
                ORDER BY a.started_at DESC LIMIT 1) AS newest
            "#,
            &column(failing, |(id, _)| *id),
            &column(failing, |(_, since)| *since),
            FAILING_LOOKED_MAX,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| {
                let failure = NewestFailure {
                    answer: row.answer.into(),
                    error_type: row.error_type,
                };
                (row.subscription, failure)
            })
            .collect())
    }

    /// What was charged to a day, and the quota by which it was, for each of these subscriptions that was charged anything.
    pub async fn budgets_of(&self, subscriptions: &[Uuid]) -> Result<HashMap<Uuid, (Budget, u32)>, Error> {
        let rows = sqlx::query!(
            "SELECT subscription_id, day, used, quota FROM subscription_budgets WHERE subscription_id = ANY ($1)",
            subscriptions,
        )
        .fetch_all(&self.pool)
        .await?;
        let budget = |day, used: i64| Budget {
            day,
            used: used.unsigned_abs(),
        };
        Ok(rows
            .into_iter()
            .map(|row| {
                (
                    row.subscription_id,
                    (budget(row.day, row.used), row.quota.unsigned_abs()),
                )
            })
            .collect())
    }

    /// When the first secret ends that signs at `now` and ends by `until`, for each of these subscriptions that has one.
    pub async fn secrets_ending(
        &self,
        subscriptions: &[Uuid],
        (now, until): (DateTime<Utc>, DateTime<Utc>),
    ) -> Result<HashMap<Uuid, DateTime<Utc>>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT subscription_id, min(expires_at) AS "at!" FROM signing_secrets
            WHERE subscription_id = ANY ($1) AND revoked_at IS NULL AND expires_at > $2 AND expires_at <= $3
            GROUP BY subscription_id
            "#,
            subscriptions,
            now,
            until,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.subscription_id, row.at))
            .collect())
    }
}

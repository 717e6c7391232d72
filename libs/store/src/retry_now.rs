//! Making retries due at once that wait for their time. That is no transition: the attempt is the next of those that are left, and a claim
//! that comes first or after decides that it is made once.

use domain::lifecycle::Attempts;
use domain::notification::{NotificationId, NotificationStatus};
use domain::push::{PushId, PushStatus};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::read::Count;
use crate::webhook::NotificationsOf;
use crate::{Act, Error, Lane, Store, stored};

/// Most retries that one statement makes due.
const HASTENED_MAX: i64 = 1_000;
/// Most pushes that wait for a time that are looked at for it: those that are scheduled wait beside them.
const LOOKED_AT_MAX: i64 = 100_000;

/// What came of making one retry due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryNow<S> {
    /// It is due now, and has had these attempts.
    Done(Attempts),
    /// It was due before.
    Due,
    /// It is in this status, and waits for no retry.
    NoRetry(S),
    /// There is no such thing.
    Unknown,
}

/// What came of making many retries due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetriesNow {
    /// How many are due now that were not.
    pub hastened: u64,
    /// Whether others may be left.
    pub more: bool,
}

struct Found {
    status: String,
    attempts: u32,
    before_resend: u32,
    hastened: bool,
}

/// A subscription, of whose notifications this many were made due.
struct Hastened {
    subscription: Uuid,
    hastened: i64,
}

impl Store {
    /// Makes the retry of a push due now.
    pub async fn retry_push_now(&self, id: PushId, act: Act<'_>) -> Result<RetryNow<PushStatus>, Error> {
        let mut transaction = self.pool.begin().await?;
        let found = sqlx::query_as!(
            Found,
            r#"
            WITH found AS (SELECT id, status, attempts, replayed_after FROM push_notifications WHERE id = $1 FOR UPDATE),
            hastened AS (
                UPDATE push_notifications p SET next_attempt_at = $2, updated_at = $2
                FROM found f WHERE p.id = f.id AND p.status = 'RETRY' AND p.next_attempt_at > $2
                RETURNING p.id)
            SELECT status AS "status!", attempts AS "attempts!: Count", replayed_after AS "before_resend!: Count",
                   EXISTS (SELECT FROM hastened) AS "hastened!" FROM found
            "#,
            id.uuid(),
            act.at,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let subject = ("push.retry-now", format!("push/{id}"));
        let Some(found) = record_one(&mut transaction, found, subject, act).await? else {
            return Ok(RetryNow::Unknown);
        };
        transaction.commit().await?;
        let status = stored("push status", &found.status)?;
        Ok(found.came(status, &PushStatus::Retry))
    }

    /// Makes the retry of a notification due now. One of a subscription that is paused waits for the end of the pause all the same.
    pub async fn retry_notification_now(
        &self,
        id: NotificationId,
        act: Act<'_>,
    ) -> Result<RetryNow<NotificationStatus>, Error> {
        let mut transaction = self.pool.begin().await?;
        let found = sqlx::query_as!(
            Found,
            r#"
            WITH found AS (SELECT id, status, attempts, resent_after FROM notifications WHERE id = $1 FOR UPDATE),
            hastened AS (
                UPDATE notifications n SET next_attempt_at = $2, slot_at = NULL, updated_at = $2
                FROM found f WHERE n.id = f.id AND n.status = 'RETRY' AND n.next_attempt_at > $2
                RETURNING n.id)
            SELECT status AS "status!", attempts AS "attempts!: Count", resent_after AS "before_resend!: Count",
                   EXISTS (SELECT FROM hastened) AS "hastened!" FROM found
            "#,
            id.uuid(),
            act.at,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let subject = ("notification.retry-now", format!("notification/{id}"));
        let Some(found) = record_one(&mut transaction, found, subject, act).await? else {
            return Ok(RetryNow::Unknown);
        };
        transaction.commit().await?;
        let status = stored("notification status", &found.status)?;
        Ok(found.came(status, &NotificationStatus::Retry))
    }

    /// Makes the retries of a lane due now, those that are due first before others; a bounded number of them.
    pub async fn retry_lane_now(&self, lane: Lane, act: Act<'_>) -> Result<RetriesNow, Error> {
        if lane == Lane::Reseller {
            return self.retry_notifications_now(&NotificationsOf::All, act).await;
        }
        let mut transaction = self.pool.begin().await?;
        let came = sqlx::query!(
            r#"
            WITH looked_at AS MATERIALIZED (
                SELECT id, status FROM push_notifications
                WHERE status IN ('SCHEDULED', 'RETRY') AND next_attempt_at > $1
                ORDER BY next_attempt_at, id LIMIT $2),
            hastened AS (
                UPDATE push_notifications p SET next_attempt_at = $1, updated_at = $1
                FROM (SELECT id FROM looked_at WHERE status = 'RETRY' LIMIT $3) AS found
                WHERE p.id = found.id AND p.status = 'RETRY' AND p.next_attempt_at > $1
                RETURNING p.id)
            SELECT (SELECT count(*) FROM hastened) AS "hastened!", (SELECT count(*) FROM looked_at) AS "looked_at!"
            "#,
            act.at,
            LOOKED_AT_MAX,
            HASTENED_MAX,
        )
        .fetch_one(&mut *transaction)
        .await?;
        let hastened = came.hastened.unsigned_abs();
        if hastened > 0 {
            let entry = act.entry(
                "lane.retry-now",
                format!("lane/{}", lane.as_str()),
                json!({ "retries": hastened }),
            );
            entry.record(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(RetriesNow {
            hastened,
            more: came.hastened >= HASTENED_MAX || came.looked_at >= LOOKED_AT_MAX,
        })
    }

    /// Makes the retries of subscriptions due now; a bounded number of them. Those of a subscription that gets nothing stay as they are.
    pub async fn retry_notifications_now(
        &self,
        of: &NotificationsOf,
        act: Act<'_>,
    ) -> Result<RetriesNow, Error> {
        let subscriptions = self.subscriptions_of(of).await?;
        let mut transaction = self.pool.begin().await?;
        let counts = sqlx::query_as!(
            Hastened,
            r#"
            WITH found AS (
                SELECT n.id FROM UNNEST($1::uuid[]) AS i(subscription)
                JOIN subscriptions s ON s.id = i.subscription AND s.deleted_at IS NULL AND s.state IN ('ACTIVE', 'DEGRADED')
                CROSS JOIN LATERAL (
                    SELECT id FROM notifications
                    WHERE subscription_id = s.id AND status = 'RETRY' AND next_attempt_at > $2
                    ORDER BY next_attempt_at, id LIMIT $3) AS n
                LIMIT $3),
            hastened AS (
                UPDATE notifications n SET next_attempt_at = $2, slot_at = NULL, updated_at = $2
                FROM found f
                WHERE n.id = f.id AND n.status = 'RETRY' AND n.next_attempt_at > $2
                RETURNING n.subscription_id)
            SELECT subscription_id AS "subscription!", count(*) AS "hastened!" FROM hastened GROUP BY 1 ORDER BY 1
            "#,
            &subscriptions,
            act.at,
            HASTENED_MAX,
        )
        .fetch_all(&mut *transaction)
        .await?;
        for count in &counts {
            let subject = format!("subscription/{}", count.subscription);
            let details = json!({ "retries": count.hastened });
            let entry = act.entry("subscription.retry-now", subject, details);
            entry.record(&mut transaction).await?;
        }
        transaction.commit().await?;
        let hastened = counts.iter().map(|count| count.hastened.unsigned_abs()).sum();
        Ok(RetriesNow {
            hastened,
            more: hastened >= HASTENED_MAX.unsigned_abs(),
        })
    }
}

/// Records what a statement about one thing has done, if it has done anything.
async fn record_one(
    connection: &mut PgConnection,
    found: Option<Found>,
    (action, subject): (&str, String),
    act: Act<'_>,
) -> Result<Option<Found>, Error> {
    if found.as_ref().is_some_and(|found| found.hastened) {
        act.entry(action, subject, json!({})).record(connection).await?;
    }
    Ok(found)
}

impl Found {
    fn came<S: PartialEq>(&self, status: S, retry: &S) -> RetryNow<S> {
        match (self.hastened, status == *retry) {
            (true, _) => RetryNow::Done(Attempts {
                total: self.attempts,
                before_resend: self.before_resend,
            }),
            (false, true) => RetryNow::Due,
            (false, false) => RetryNow::NoRetry(status),
        }
    }
}

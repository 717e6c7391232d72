//! Limits of a subscription: how much of its daily quota is used, and changing them. A changed limit needs nothing to be
//! arranged again: what waits has no place that could be of the old one.

use chrono::{DateTime, Utc};
use domain::quota::Budget;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::locked::subject;
use crate::{Act, Error, Store};

/// Most scheduled notifications that are counted.
const COUNTED_MAX: i64 = 100_000;

/// How much a subscription may get, and has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaView {
    /// Notifications a day; the default when `None`.
    pub daily_quota: Option<u32>,
    /// Attempts a second; the default when `None`.
    pub requests_per_second: Option<u32>,
    /// What was charged to a day, and the quota by which it was.
    pub budget: Option<(Budget, u32)>,
    /// Notifications in line for the quota, counted up to 100,000.
    pub scheduled: u64,
}

/// New limits of a subscription; `None` leaves one as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Notifications a day.
    pub daily_quota: Option<u32>,
    /// Attempts a second.
    pub requests_per_second: Option<u32>,
}

impl Store {
    /// The quota of a reseller's subscription.
    pub async fn find_quota(&self, reseller: &str, subscription: Uuid) -> Result<Option<QuotaView>, Error> {
        let row = sqlx::query!(
            r#"
            SELECT s.daily_quota, s.requests_per_second, b.day AS "day?", b.used AS "used?", b.quota AS "quota?",
                   (SELECT count(*) FROM (SELECT FROM notifications n
                                          WHERE n.subscription_id = s.id AND n.status = 'SCHEDULED' AND n.reason = 'QUOTA'
                                          LIMIT $3) AS w) AS "scheduled!"
            FROM subscriptions s LEFT JOIN subscription_budgets b ON b.subscription_id = s.id
            WHERE s.reseller_id = $1 AND s.id = $2 AND s.deleted_at IS NULL
            "#,
            reseller,
            subscription,
            COUNTED_MAX,
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|row| QuotaView {
            daily_quota: row.daily_quota.map(i32::unsigned_abs),
            requests_per_second: row.requests_per_second.map(i32::unsigned_abs),
            budget: match (row.day, row.used, row.quota) {
                (Some(day), Some(used), Some(quota)) => {
                    let used = used.unsigned_abs();
                    Some((Budget { day, used }, quota.unsigned_abs()))
                }
                _ => None,
            },
            scheduled: row.scheduled.unsigned_abs(),
        }))
    }

    /// Sets limits of a subscription, whosever it is. `false` when there is none with this identifier.
    pub async fn set_limits(&self, subscription: Uuid, limits: Limits, act: Act<'_>) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        if !change_limits(&mut transaction, subscription, limits, act.at).await? {
            return Ok(false);
        }
        let set = [
            ("dailyQuota", limits.daily_quota),
            ("requestsPerSecond", limits.requests_per_second),
        ];
        let set = set
            .into_iter()
            .filter_map(|(name, limit)| Some((name.to_owned(), limit?.into())));
        let entry = act.entry(
            "subscription.limits",
            subject(subscription),
            Value::Object(set.collect()),
        );
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// Sets limits, which hold from the next claim on, and has the line looked at. Returns whether the subscription exists.
pub(super) async fn change_limits(
    connection: &mut PgConnection,
    subscription: Uuid,
    limits: Limits,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let bounded = |limit: Option<u32>| limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX));
    let changed = sqlx::query!(
        r#"
        WITH changed AS (
            UPDATE subscriptions
            SET daily_quota = coalesce($2, daily_quota), requests_per_second = coalesce($3, requests_per_second),
                updated_at = $4
            WHERE id = $1 AND deleted_at IS NULL
            RETURNING id),
        looked_at AS (
            UPDATE subscription_budgets b
            SET changed_at = now(), release_at = CASE WHEN b.release_at IS NOT NULL THEN now() END
            FROM changed c WHERE b.subscription_id = c.id)
        SELECT count(*) AS "count!" FROM changed
        "#,
        subscription,
        bounded(limits.daily_quota),
        bounded(limits.requests_per_second),
        now,
    )
    .fetch_one(connection)
    .await?;
    Ok(changed.count > 0)
}

//! Daily quotas: how much of one is used, and changing it. The places of what already waits for its day are given anew
//! when the quota changes, under the lock under which places are taken.

use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use domain::quota::{Budget, day_of};
use sqlx::PgConnection;
use uuid::Uuid;

use super::claim::{DAYS_AHEAD, day_starts};
use crate::{Error, Store, interval};

/// Most scheduled notifications that get a new day when a quota changes. Laying them out holds the lock under which
/// places are taken, and whoever claims waits for it: with more of them the others of the lane would feel it. Then all
/// keep their days, and the new quota holds for what comes after them.
const LAID_OUT_MAX: i64 = 5_000;
/// Most scheduled notifications that are counted.
const COUNTED_MAX: i64 = 100_000;

/// How the days of a quota are laid out.
#[derive(Debug, Clone, Copy)]
pub struct QuotaTerms {
    /// Where days begin and end.
    pub zone: Tz,
    /// How the places of a coming day are spread.
    pub release_window: Duration,
}

/// How much a subscription may get, and has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaView {
    /// Notifications a day; the default when `None`.
    pub daily_quota: Option<u32>,
    /// Attempts a second; the default when `None`.
    pub requests_per_second: Option<u32>,
    /// The places that are taken, and the quota by which they were.
    pub budget: Option<(Budget, u32)>,
    /// Notifications that wait for a coming day, counted up to 100,000.
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
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails.
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
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then nothing is changed.
    pub async fn set_limits(
        &self,
        subscription: Uuid,
        limits: Limits,
        terms: &QuotaTerms,
        now: DateTime<Utc>,
    ) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        if !change_limits(&mut transaction, subscription, limits, terms, now).await? {
            return Ok(false);
        }
        transaction.commit().await?;
        Ok(true)
    }
}

/// Sets limits, and gives what waits for its day a new one. Returns whether the subscription exists.
pub(super) async fn change_limits(
    connection: &mut PgConnection,
    subscription: Uuid,
    limits: Limits,
    terms: &QuotaTerms,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let bounded = |limit: Option<u32>| limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX));
    let changed = sqlx::query!(
        r#"
        UPDATE subscriptions
        SET daily_quota = coalesce($2, daily_quota), requests_per_second = coalesce($3, requests_per_second),
            updated_at = $4
        WHERE id = $1 AND deleted_at IS NULL
        "#,
        subscription,
        bounded(limits.daily_quota),
        bounded(limits.requests_per_second),
        now,
    )
    .execute(&mut *connection)
    .await?;
    if changed.rows_affected() == 0 {
        return Ok(false);
    }
    if let Some(quota) = limits.daily_quota {
        lay_out(connection, subscription, quota, terms, now).await?;
    }
    Ok(true)
}

/// Gives everything that waits for its day a place under a new quota, in the order in which it waits.
///
/// What is used of the days so far is counted by the old quota. When more of today is used than the new one allows, the
/// count begins with tomorrow: today gets nothing more, not even from a claim that still reckons with the old quota, and
/// nothing is owed to the days that follow.
async fn lay_out(
    connection: &mut PgConnection,
    subscription: Uuid,
    quota: u32,
    terms: &QuotaTerms,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    // A statement of its own, so that the next one sees whatever took its place while this one waited for the lock.
    let row = sqlx::query!(
        "SELECT day, used, quota FROM subscription_budgets WHERE subscription_id = $1 FOR UPDATE",
        subscription,
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(()) };
    if waits_more_than(connection, subscription, LAID_OUT_MAX).await? {
        return Ok(());
    }
    let budget = Budget {
        day: row.day,
        used: row.used.unsigned_abs(),
    };
    let current = budget.on(day_of(now, terms.zone), row.quota.unsigned_abs());
    sqlx::query!(
        r#"
        WITH waiting AS (
            SELECT id, status, row_number() OVER (ORDER BY next_attempt_at, id) - 1 AS rank, count(*) OVER () AS count
            FROM notifications
            WHERE subscription_id = $1 AND status = 'SCHEDULED' AND reason = 'QUOTA'),
        taken AS (
            SELECT c.count, greatest(0, $3::bigint - c.count) AS used
            FROM (SELECT coalesce((SELECT w.count FROM waiting w LIMIT 1), 0) AS count) AS c),
        base AS (
            SELECT count, CASE WHEN used > $2::bigint THEN $4::date + 1 ELSE $4::date END AS day,
                   CASE WHEN used > $2::bigint THEN 0 ELSE used END AS number
            FROM taken),
        placed AS (
            SELECT w.id, w.status, b.day + least(36500, (b.number + w.rank) / $2)::integer AS day, (b.number + w.rank) % $2 AS number
            FROM waiting w CROSS JOIN base b),
        laid AS (
            UPDATE notifications n
            SET charged_on = p.day, updated_at = $7,
                next_attempt_at = ($5::timestamptz[])[least(p.day - $4::date, $8::integer) + 1]
                                + $6::interval * (p.number::float8 / $2)
            FROM placed p
            -- Not the name of the status: it would let the planner read all that wait instead of these by id.
            WHERE n.id = p.id AND n.status = p.status AND n.reason = 'QUOTA')
        UPDATE subscription_budgets b
        SET day = base.day, used = base.number + base.count, quota = $2::bigint
        FROM base
        WHERE b.subscription_id = $1
        "#,
        subscription,
        i64::from(quota),
        i64::try_from(current.used).unwrap_or(i64::MAX),
        current.day,
        &day_starts(current.day, terms.zone),
        interval(terms.release_window),
        now,
        DAYS_AHEAD,
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn waits_more_than(
    connection: &mut PgConnection,
    subscription: Uuid,
    limit: i64,
) -> Result<bool, Error> {
    let beyond = sqlx::query_scalar!(
        r#"
        SELECT 1 AS "one!" FROM notifications
        WHERE subscription_id = $1 AND status = 'SCHEDULED' AND reason = 'QUOTA'
        OFFSET $2 LIMIT 1
        "#,
        subscription,
        limit,
    )
    .fetch_optional(connection)
    .await?;
    Ok(beyond.is_some())
}

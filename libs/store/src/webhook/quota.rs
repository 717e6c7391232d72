//! Limits of a subscription: how much of its daily quota is used, and changing them. A changed limit needs nothing to be
//! arranged again: what waits has no place that could be of the old one.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::quota::{Budget, day_of};
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::PgConnection;
use utoipa::ToSchema;
use uuid::Uuid;

use super::locked::subject;
use crate::{Act, Error, Store};

/// Most scheduled notifications that are looked at to count those that wait for the quota.
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
    /// Notifications that wait for the quota, counted among up to 100,000 in line.
    pub scheduled: u64,
}

/// What a subscription may get, by its own limits or the default ones, and has got of the present day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PresentLimits)]
pub struct PresentLimits {
    /// Notifications a day.
    pub daily_quota: u32,
    /// Attempts a second; null without a limit.
    pub requests_per_second: Option<u32>,
    /// Notifications that were charged to the present day.
    pub used_today: u64,
}

/// Which limits of a subscription change: `None` leaves one as it is, and `Some(None)` is the default from then on.
#[derive(Debug, Clone, Copy, Default)]
pub struct LimitsChange {
    /// Notifications a day.
    pub daily_quota: Option<Option<u32>>,
    /// Attempts a second.
    pub requests_per_second: Option<Option<u32>>,
}

/// The limits of a subscription of its own; the default where there is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Notifications a day.
    pub(super) daily_quota: Option<u32>,
    /// Attempts a second.
    pub(super) requests_per_second: Option<u32>,
}

impl Limits {
    /// What an audit entry says of a change to these from what was `before`; where there was no limit of its own, it was null.
    pub(super) fn changes(self, before: Self) -> Value {
        let set = [
            ("dailyQuota", before.daily_quota, self.daily_quota),
            (
                "requestsPerSecond",
                before.requests_per_second,
                self.requests_per_second,
            ),
        ];
        let changed = set.into_iter().filter(|(_, from, to)| from != to);
        let changes = changed.map(|(name, from, to)| (name.to_owned(), json!({ "from": from, "to": to })));
        Value::Object(changes.collect())
    }
}

impl Store {
    /// The quota of a reseller's subscription.
    pub async fn find_quota(&self, reseller: &str, subscription: Uuid) -> Result<Option<QuotaView>, Error> {
        let row = sqlx::query!(
            r#"
            SELECT s.daily_quota, s.requests_per_second, b.day AS "day?", b.used AS "used?", b.quota AS "quota?",
                   (SELECT count(*) FILTER (WHERE w.reason = 'QUOTA')
                    FROM (SELECT n.reason FROM notifications n
                          WHERE n.subscription_id = s.id AND n.status = 'SCHEDULED' LIMIT $3) AS w) AS "scheduled!"
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

    /// What those of these subscriptions that there are may get at `now`, and have got on its day.
    pub async fn present_limits(
        &self,
        subscriptions: &[Uuid],
        now: DateTime<Utc>,
    ) -> Result<HashMap<Uuid, PresentLimits>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT s.id, s.daily_quota, s.requests_per_second, b.day AS "day?", b.used AS "used?", b.quota AS "quota?"
            FROM subscriptions s LEFT JOIN subscription_budgets b ON b.subscription_id = s.id
            WHERE s.id = ANY ($1) AND s.deleted_at IS NULL
            "#,
            subscriptions,
        )
        .fetch_all(&self.pool)
        .await?;
        let terms = &self.line_terms;
        let today = day_of(now, terms.zone);
        let limits = rows.into_iter().map(|row| {
            let daily_quota = row.daily_quota.map_or(terms.daily_quota, i32::unsigned_abs);
            let used_today = match (row.day, row.used, row.quota) {
                (Some(day), Some(used), Some(quota)) => {
                    let used = used.unsigned_abs();
                    Budget { day, used }.used_on(today, quota.unsigned_abs(), daily_quota)
                }
                _ => 0,
            };
            let limits = PresentLimits {
                daily_quota,
                requests_per_second: row
                    .requests_per_second
                    .map(i32::unsigned_abs)
                    .or(terms.requests_per_second),
                used_today,
            };
            (row.id, limits)
        });
        Ok(limits.collect())
    }

    /// Changes limits of a subscription, whosever it is. `false` when there is none with this identifier.
    pub async fn set_limits(
        &self,
        subscription: Uuid,
        change: LimitsChange,
        act: Act<'_>,
    ) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        let Some(before) = locked_limits(&mut transaction, subscription).await? else {
            return Ok(false);
        };
        let after = Limits {
            daily_quota: change.daily_quota.unwrap_or(before.daily_quota),
            requests_per_second: change.requests_per_second.unwrap_or(before.requests_per_second),
        };
        if before != after {
            change_limits(&mut transaction, subscription, after, act.at).await?;
            let entry = act.entry(
                "subscription.limits",
                subject(subscription),
                after.changes(before),
            );
            entry.record(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }
}

/// The limits of a subscription, which no other transaction changes until this one ends.
pub(super) async fn locked_limits(
    connection: &mut PgConnection,
    subscription: Uuid,
) -> Result<Option<Limits>, Error> {
    let row = sqlx::query!(
        "SELECT daily_quota, requests_per_second FROM subscriptions WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE",
        subscription,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| Limits {
        daily_quota: row.daily_quota.map(i32::unsigned_abs),
        requests_per_second: row.requests_per_second.map(i32::unsigned_abs),
    }))
}

/// Puts limits in place of those of before, which hold from the next claim on, and has the line looked at.
pub(super) async fn change_limits(
    connection: &mut PgConnection,
    subscription: Uuid,
    limits: Limits,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let bounded = |limit: Option<u32>| limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX));
    sqlx::query!(
        r#"
        WITH changed AS (
            UPDATE subscriptions SET daily_quota = $2, requests_per_second = $3, updated_at = $4
            WHERE id = $1 AND deleted_at IS NULL
            RETURNING id)
        UPDATE subscription_budgets b
        SET changed_at = now(), release_at = CASE WHEN b.release_at IS NOT NULL THEN now() END
        -- An array of one is looked up, as in the claims.
        FROM changed c WHERE b.subscription_id = ANY (ARRAY[c.id])
        "#,
        subscription,
        bounded(limits.daily_quota),
        bounded(limits.requests_per_second),
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

//! How much of a quota was used day by day, and of all quotas on a day.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use crate::read::{Count, Nullable};
use crate::{Error, Store};

/// A day of a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaDay {
    /// The day.
    pub day: NaiveDate,
    /// Notifications that were charged to it; `None` for a day before such days were kept, for one without any, and for the present one.
    pub used: Option<u64>,
    /// The quota of that day.
    pub quota: Option<u32>,
    /// Notifications that ended on it, delivered or failed for good.
    pub ended: u64,
}

impl Store {
    /// The days of a subscription's quota that have anything to tell, from the one of `since` on, the first one first. Whose it is, is for
    /// the caller to know.
    pub async fn quota_days(
        &self,
        subscription: Uuid,
        since: NaiveDate,
        starts_at: DateTime<Utc>,
    ) -> Result<Vec<QuotaDay>, Error> {
        let ended = sqlx::query!(
            r#"
            SELECT (hour AT TIME ZONE $3)::date AS "day!", sum(delivered + failed)::bigint AS "ended!: Count"
            FROM delivery_statistics WHERE subscription_id = $1 AND hour >= $2 GROUP BY 1
            "#,
            subscription,
            starts_at,
            self.line_terms.zone.name(),
        )
        .fetch_all(&self.pool)
        .await?;
        let kept = sqlx::query!(
            "SELECT day, used, quota FROM quota_days WHERE subscription_id = $1 AND day >= $2",
            subscription,
            since,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut days: BTreeMap<NaiveDate, QuotaDay> = BTreeMap::new();
        let nothing = |day| QuotaDay {
            day,
            used: None,
            quota: None,
            ended: 0,
        };
        for row in ended {
            days.entry(row.day).or_insert_with(|| nothing(row.day)).ended = row.ended.into();
        }
        for row in kept {
            let day = days.entry(row.day).or_insert_with(|| nothing(row.day));
            day.used = Some(row.used.unsigned_abs());
            day.quota = Some(row.quota.unsigned_abs());
        }
        Ok(days.into_values().collect())
    }

    /// How many notifications are charged to the quotas of all subscriptions on a day: the mean of the days from `since` on and before `today`,
    /// without those on which none was; `None` when none was on any. However many are sent, only the days kept of each subscription are read.
    pub async fn charged_a_day(&self, since: NaiveDate, today: NaiveDate) -> Result<Option<u64>, Error> {
        let row = sqlx::query!(
            r#"
            SELECT (sum(d.used) / count(DISTINCT d.day))::bigint AS "mean!: Nullable<Count>"
            FROM (SELECT day, used FROM quota_days WHERE day >= $1 AND day < $2
                  -- The last day of a subscription that was sent nothing since is still here.
                  UNION ALL SELECT day, least(used, quota) FROM subscription_budgets WHERE day >= $1 AND day < $2) AS d
            WHERE d.used > 0
            "#,
            since,
            today,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(row.mean.into())
    }
}

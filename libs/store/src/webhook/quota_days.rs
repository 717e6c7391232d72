//! How much of a quota was used day by day.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use crate::read::Count;
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
}

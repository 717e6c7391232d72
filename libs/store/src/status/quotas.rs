//! What waits because daily quotas are used up.

use chrono::{DateTime, Utc};
use domain::quota::{Budget, day_of, start_of};
use uuid::Uuid;

use crate::read::Count;
use crate::{Error, Store};

/// Most notifications that are counted; one more says that there are more.
pub const QUOTA_COUNTED_MAX: u64 = 1_000;
/// Most lines that are looked at.
const LINES_MAX: i64 = 1_000;

/// What waits in line of subscriptions that have got all of the present day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaWaiting {
    /// How many notifications, counted up to one more than [`QUOTA_COUNTED_MAX`].
    pub notifications: u64,
    /// Of how many subscriptions those are.
    pub subscriptions: u64,
    /// The one that has the most of them, as far as they are counted.
    pub most: Uuid,
    /// Whether there were more lines than are looked at, so that there may be more of both.
    pub at_least: bool,
    /// When the next day begins, and with it the first turn.
    pub again_at: DateTime<Utc>,
}

impl Store {
    /// What waits at `now` until the next day gives it a turn; `None` when nothing does. What is paused or may not be sent to waits for
    /// something else, and what moves at its requests per second has its turn today. Lines that move are looked at within a second and those
    /// that do not later, so that the latter are read first.
    pub async fn waiting_for_quotas(&self, now: DateTime<Utc>) -> Result<Option<QuotaWaiting>, Error> {
        let lines = sqlx::query!(
            r#"
            SELECT b.subscription_id, b.day, b.used, b.quota, s.daily_quota
            FROM subscription_budgets b JOIN subscriptions s ON s.id = b.subscription_id
            WHERE b.release_at IS NOT NULL
              AND s.state IN ('ACTIVE', 'DEGRADED') AND NOT s.suspended AND s.deleted_at IS NULL
            ORDER BY b.release_at DESC
            LIMIT $1
            "#,
            LINES_MAX,
        )
        .fetch_all(&self.pool)
        .await?;
        let terms = &self.line_terms;
        let today = day_of(now, terms.zone);
        let at_least = i64::try_from(lines.len()).is_ok_and(|read| read >= LINES_MAX);
        let used_up = lines.into_iter().filter(|line| {
            let budget = Budget {
                day: line.day,
                used: line.used.unsigned_abs(),
            };
            let quota = line.daily_quota.map_or(terms.daily_quota, i32::unsigned_abs);
            budget.free(today, line.quota.unsigned_abs(), quota) == 0
        });
        let used_up: Vec<Uuid> = used_up.map(|line| line.subscription_id).collect();
        if used_up.is_empty() {
            return Ok(None);
        }
        let waiting = sqlx::query!(
            r#"
            SELECT count(*) AS "notifications!: Count", count(DISTINCT w.id) AS "subscriptions!: Count",
                   mode() WITHIN GROUP (ORDER BY w.id) AS most
            FROM (SELECT l.id FROM UNNEST($1::uuid[]) AS l(id)
                  CROSS JOIN LATERAL (SELECT 1 FROM notifications n
                                      WHERE n.subscription_id = l.id AND n.status = 'SCHEDULED'
                                      ORDER BY n.next_attempt_at, n.id LIMIT $2) AS n
                  LIMIT $2) AS w
            "#,
            &used_up,
            QUOTA_COUNTED_MAX.cast_signed() + 1,
        )
        .fetch_one(&self.pool)
        .await?;
        // There is none of which there is most where none waits.
        Ok(waiting.most.map(|most| QuotaWaiting {
            notifications: waiting.notifications.into(),
            subscriptions: waiting.subscriptions.into(),
            most,
            at_least,
            again_at: start_of(today.succ_opt().unwrap_or(today), terms.zone),
        }))
    }
}

//! What waits in each lane, by what it waits for, with the oldest of it and when the next is due.

use chrono::{DateTime, Utc};
use domain::lifecycle::Status;
use domain::reason::NotificationReason;

use crate::read::{Count, Name, Nullable};
use crate::{Error, Store};

/// Most rows that are counted of each status; one more says that there are more. Of pushes, SCHEDULED and RETRY are counted together, the first
/// due ones first.
pub const WAITS_COUNTED_MAX: u64 = 10_000;

/// What of a lane waits for the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waits {
    /// Its status; never one that has ended.
    pub status: Status,
    /// Why it waits, of notifications that are SCHEDULED or PENDING: that they are paused, else what is stored.
    pub reason: Option<NotificationReason>,
    /// Whether it is being sent.
    pub claimed: bool,
    /// How many.
    pub count: u64,
    /// When the first of them was accepted.
    pub oldest: DateTime<Utc>,
    /// When the next of them is due; of what is in line for quota or rate when the next line is looked at.
    pub next_due: Option<DateTime<Utc>>,
}

impl Store {
    /// What of the push lane waits.
    pub async fn waits_of_pushes(&self) -> Result<Vec<Waits>, Error> {
        Ok(sqlx::query_as!(
            Waits,
            r#"
            SELECT w.status AS "status!: Name<_>", NULL::text AS "reason!: Nullable<Name<_>>", w.claimed AS "claimed!",
                   count(*) AS "count!: Count", min(w.created_at) AS "oldest!", min(w.due) AS next_due
            FROM ((SELECT status, false AS claimed, created_at, next_attempt_at AS due FROM push_notifications
                   WHERE status IN ('SCHEDULED', 'RETRY') ORDER BY next_attempt_at, id LIMIT $1)
                  UNION ALL
                  (SELECT status, false, created_at, NULL FROM push_notifications
                   WHERE status = 'PENDING' ORDER BY id LIMIT $1)
                  UNION ALL
                  (SELECT status, lease_token IS NOT NULL, created_at, NULL FROM push_notifications
                   WHERE status = 'IN_MEMORY' ORDER BY leased_until LIMIT $1)) AS w
            GROUP BY w.status, w.claimed
            ORDER BY w.status, w.claimed
            "#,
            WAITS_COUNTED_MAX.cast_signed() + 1,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// What of the reseller lane waits. What is SCHEDULED or PENDING while its subscription is paused, by itself or with its reseller, waits for the
    /// end of that; what had been held back by a pause that is over waits for its turn.
    pub async fn waits_of_notifications(&self) -> Result<Vec<Waits>, Error> {
        Ok(sqlx::query_as!(
            Waits,
            r#"
            SELECT w.status AS "status!: Name<_>", w.reason AS "reason!: Nullable<Name<_>>", w.claimed AS "claimed!",
                   sum(w.count)::bigint AS "count!: Count", min(w.oldest) AS "oldest!",
                   CASE w.status WHEN 'SCHEDULED' THEN (SELECT release_at FROM subscription_budgets
                                                        WHERE release_at IS NOT NULL ORDER BY release_at LIMIT 1)
                                 ELSE min(w.due) END AS next_due
            -- One look by the primary key for each subscription of which something counted waits.
            FROM (SELECT o.status, o.claimed, o.count, o.oldest, o.due,
                         CASE WHEN (SELECT s.suspended FROM subscriptions s WHERE s.id = o.subscription_id) THEN 'PAUSED'
                              WHEN o.reason <> 'PAUSED' THEN o.reason END AS reason
                  FROM (SELECT r.status, r.reason, r.claimed, r.subscription_id, count(*) AS count,
                               min(r.created_at) AS oldest, min(r.due) AS due
                        FROM ((SELECT status, reason, false AS claimed, subscription_id, created_at, NULL::timestamptz AS due
                               FROM notifications WHERE status = 'SCHEDULED' ORDER BY next_attempt_at, id LIMIT $1)
                              UNION ALL
                              (SELECT status, reason, false, subscription_id, created_at, NULL FROM notifications
                               WHERE status = 'PENDING' ORDER BY subscription_id, id LIMIT $1)
                              UNION ALL
                              (SELECT status, NULL, false, NULL, created_at, next_attempt_at FROM notifications
                               WHERE status = 'RETRY' ORDER BY subscription_id, next_attempt_at, id LIMIT $1)
                              UNION ALL
                              (SELECT status, NULL, lease_token IS NOT NULL, NULL, created_at, NULL FROM notifications
                               WHERE status = 'IN_MEMORY' ORDER BY leased_until LIMIT $1)) AS r
                        GROUP BY r.status, r.reason, r.claimed, r.subscription_id) AS o) AS w
            GROUP BY w.status, w.reason, w.claimed
            ORDER BY w.status, w.reason, w.claimed
            "#,
            WAITS_COUNTED_MAX.cast_signed() + 1,
        )
        .fetch_all(&self.pool)
        .await?)
    }
}

//! How many notifications of subscriptions failed for good, added up by how. Counted up to a bound. Whose they are, is for the caller to
//! know.
//!
//! Each failure is told by its dead letter, whatever has become of that: what failed, was sent again and failed once more counts twice.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::read::Count;
use crate::{Error, Store};

/// Most ends that are counted, as the API says it.
pub const FAILURES_COUNTED_MAX: u32 = 100_000;

/// What ended without having been delivered, in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureSum {
    /// What kind of failure the last attempt was; none of what ended without one, as what was cancelled or waited for too long.
    pub error_type: Option<String>,
    /// What failures of one kind share.
    pub fingerprint: String,
    /// How many.
    pub count: u64,
    /// Of those, how many a resend or a replay has delivered since: their dead letter was sent again, and their notification is delivered now.
    pub delivered_by_resending: u64,
    /// When the first of them ended.
    pub first_at: DateTime<Utc>,
    /// When the last one did.
    pub last_at: DateTime<Utc>,
}

impl Store {
    /// What of these subscriptions ended from `since` on and before `until` without having been delivered, the most frequent first: of
    /// `most` at most, and with that many there may be more. So many rows are read along an index, for
    /// each that was sent again its notification by its primary key, and no others, however many there are.
    pub async fn failure_sums(
        &self,
        subscriptions: &[Uuid],
        (since, until): (DateTime<Utc>, DateTime<Utc>),
        most: u32,
    ) -> Result<Vec<FailureSum>, Error> {
        Ok(sqlx::query_as!(
            FailureSum,
            r#"
            SELECT f.error_type AS "error_type?", f.fingerprint AS "fingerprint!", count(*) AS "count!: Count",
                   count(*) FILTER (WHERE f.is_delivered) AS "delivered_by_resending!: Count",
                   min(f.created_at) AS "first_at!", max(f.created_at) AS "last_at!"
            FROM (SELECT l.error_type, l.fingerprint, l.created_at,
                         -- One by one along the primary key: a join might read all of the notifications.
                         CASE WHEN t.state = 'REPLAYED'
                             THEN (SELECT n.status FROM notifications n WHERE n.id = l.notification_id) = 'SENT' END AS is_delivered
                  FROM UNNEST($1::uuid[]) AS s(subscription)
                  CROSS JOIN UNNEST(ARRAY['OPEN', 'REPLAYED', 'DISCARDED']) AS t(state)
                  CROSS JOIN LATERAL (
                      SELECT d.error_type, d.fingerprint, d.created_at, d.notification_id FROM dead_letters d
                      WHERE d.state = t.state AND d.subscription_id = s.subscription
                        AND d.created_at >= $2 AND d.created_at < $3
                      ORDER BY d.created_at DESC, d.id DESC LIMIT $4) AS l
                  LIMIT $4) AS f
            GROUP BY f.error_type, f.fingerprint
            ORDER BY count(*) DESC, f.error_type, f.fingerprint
            "#,
            subscriptions,
            since,
            until,
            i64::from(most),
        )
        .fetch_all(&self.pool)
        .await?)
    }
}

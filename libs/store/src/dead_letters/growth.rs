//! How many dead letters were written in each hour, from their tallies: it costs as much as there are kinds and hours, however many
//! dead letters there are.

use chrono::{DateTime, Utc};

use super::filter::DeadLetterFilter;
use super::kinds::{fingerprint_of, lanes_of, reasons_of, states_of};
use crate::read::{Count, Name};
use crate::text::storable;
use crate::{DeadLetterLane, Error, Store};

/// How many dead letters of one kind were written in an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterHour {
    /// Whose they are.
    pub lane: DeadLetterLane,
    /// The fingerprint of the failure.
    pub fingerprint: String,
    /// Where it was.
    pub target: String,
    /// When the hour began.
    pub hour: DateTime<Utc>,
    /// How many.
    pub dead_letters: u64,
}

impl Store {
    /// The hours since `since` in which dead letters of the largest `kinds` kinds were written, as far as `filter` says state, lane,
    /// reason, fingerprint and target. A kind's hours stand together, the largest kind first.
    pub async fn dead_letter_hours(
        &self,
        filter: &DeadLetterFilter,
        since: DateTime<Utc>,
        kinds: u32,
    ) -> Result<Vec<DeadLetterHour>, Error> {
        let (fingerprint, prefix) = fingerprint_of(filter);
        let target = filter.target.as_deref().map(storable);
        Ok(sqlx::query_as!(
            DeadLetterHour,
            r#"
            WITH hours AS (
                SELECT t.lane, t.fingerprint, t.target, t.hour, sum(t.letters)::bigint AS letters
                FROM dead_letter_tallies t
                WHERE t.state = ANY ($1::text[]) AND t.lane = ANY ($2::text[]) AND t.reason = ANY ($3::text[])
                  AND ($4::text IS NULL OR t.fingerprint = $4 OR $5::boolean AND starts_with(t.fingerprint, $4))
                  AND ($6::text IS NULL OR t.target = $6) AND t.hour >= $7
                GROUP BY t.lane, t.fingerprint, t.target, t.hour HAVING sum(t.letters) > 0),
            summed AS (
                SELECT h.*, sum(h.letters) OVER (PARTITION BY h.lane, h.fingerprint, h.target) AS of_kind FROM hours h),
            placed AS (
                SELECT s.*, dense_rank() OVER (ORDER BY s.of_kind DESC, s.lane, s.fingerprint, s.target) AS place FROM summed s)
            SELECT lane AS "lane!: Name<_>", fingerprint AS "fingerprint!", target AS "target!", hour AS "hour!",
                   letters AS "dead_letters!: Count"
            FROM placed WHERE place <= $8 ORDER BY place, hour
            "#,
            &states_of(filter) as &[&str],
            &lanes_of(filter) as &[&str],
            &reasons_of(filter) as &[&str],
            fingerprint,
            prefix,
            target.as_deref(),
            since,
            i64::from(kinds),
        )
        .fetch_all(&self.pool)
        .await?)
    }
}

//! How many dead letters were written in each hour, from their tallies: it costs as much as there are kinds in these hours, however many
//! dead letters there are.

use chrono::{DateTime, Utc};

use super::filter::DeadLetterFilter;
use super::kinds::{fingerprint_of, lanes_of, reasons_of, states_of};
use crate::read::Name;
use crate::text::storable;
use crate::{DeadLetterLane, Error, Store};

/// How many dead letters of one kind were written in each hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterHours {
    /// Whose they are.
    pub lane: DeadLetterLane,
    /// The fingerprint of the failure.
    pub fingerprint: String,
    /// Where it was.
    pub target: String,
    /// How many in each hour, the first hour first.
    pub counts: Vec<u64>,
}

/// The tallies of one kind, in no order; several of an hour add up.
struct Tallied {
    lane: DeadLetterLane,
    fingerprint: String,
    target: String,
    /// Which hour each is of, the first one being 0.
    hours: Vec<i32>,
    letters: Vec<i64>,
}

/// The sums of so many hours, the first hour first. By a clock that is behind the database's, an hour may lie ahead; that one is left out.
fn by_hour(tallies: impl IntoIterator<Item = (i32, i64)>, hours: usize) -> Vec<u64> {
    let mut sums = vec![0; hours];
    for (hour, letters) in tallies {
        if let Some(sum) = usize::try_from(hour).ok().and_then(|hour| sums.get_mut(hour)) {
            *sum += letters;
        }
    }
    sums.into_iter()
        .map(|sum: i64| sum.max(0).unsigned_abs())
        .collect()
}

impl Store {
    /// How many dead letters of the largest `kinds` kinds were written in each of the `hours` hours from `since` on, which is the beginning of
    /// one, as far as `filter` says state, lane, reason, fingerprint and target. The largest kind comes first.
    pub async fn dead_letter_hours(
        &self,
        filter: &DeadLetterFilter,
        (since, hours): (DateTime<Utc>, usize),
        kinds: u32,
    ) -> Result<Vec<DeadLetterHours>, Error> {
        let (fingerprint, prefix) = fingerprint_of(filter);
        let target = filter.target.as_deref().map(storable);
        let kinds = sqlx::query_as!(
            Tallied,
            r#"
            SELECT lane AS "lane!: Name<_>", fingerprint AS "fingerprint!", target AS "target!",
                   array_agg((extract(epoch FROM hour - $7::timestamptz) / 3600)::integer) AS "hours!", array_agg(letters) AS "letters!"
            FROM dead_letter_tallies
            WHERE state = ANY ($1::text[]) AND lane = ANY ($2::text[]) AND reason = ANY ($3::text[])
              AND ($4::text IS NULL OR fingerprint = $4 OR $5::boolean AND starts_with(fingerprint, $4))
              AND ($6::text IS NULL OR target = $6) AND hour >= $7
            GROUP BY lane, fingerprint, target HAVING sum(letters) > 0
            ORDER BY sum(letters) DESC, lane, fingerprint, target LIMIT $8
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
        .await?;
        let kinds = kinds.into_iter().map(|kind| DeadLetterHours {
            lane: kind.lane,
            fingerprint: kind.fingerprint,
            target: kind.target,
            counts: by_hour(kind.hours.into_iter().zip(kind.letters), hours),
        });
        Ok(kinds.collect())
    }

    /// The same of all kinds together.
    pub async fn dead_letters_by_hour(
        &self,
        filter: &DeadLetterFilter,
        (since, hours): (DateTime<Utc>, usize),
    ) -> Result<Vec<u64>, Error> {
        let (fingerprint, prefix) = fingerprint_of(filter);
        let target = filter.target.as_deref().map(storable);
        let tallies = sqlx::query!(
            r#"
            SELECT (extract(epoch FROM hour - $7::timestamptz) / 3600)::integer AS "hour!", sum(letters)::bigint AS "letters!"
            FROM dead_letter_tallies
            WHERE state = ANY ($1::text[]) AND lane = ANY ($2::text[]) AND reason = ANY ($3::text[])
              AND ($4::text IS NULL OR fingerprint = $4 OR $5::boolean AND starts_with(fingerprint, $4))
              AND ($6::text IS NULL OR target = $6) AND hour >= $7
            GROUP BY hour HAVING sum(letters) > 0
            "#,
            &states_of(filter) as &[&str],
            &lanes_of(filter) as &[&str],
            &reasons_of(filter) as &[&str],
            fingerprint,
            prefix,
            target.as_deref(),
            since,
        )
        .fetch_all(&self.pool)
        .await?;
        let tallies = tallies.into_iter().map(|one| (one.hour, one.letters));
        Ok(by_hour(tallies, hours))
    }
}

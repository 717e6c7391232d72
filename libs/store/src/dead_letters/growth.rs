//! How many dead letters were written in each hour.
//!
//! As far as the tallies know a filter, it costs as much as there are kinds in these hours, however many dead letters there are. Otherwise the
//! newest ones are counted one by one, up to a limit; the answer says when it was reached.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{FromRow, Postgres, QueryBuilder};

use super::filter::DeadLetterFilter;
use super::kinds::{fingerprint_of, lanes_of, reasons_of, states_of};
use super::streams::Lead;
use crate::read::Name;
use crate::text::storable;
use crate::{DeadLetterLane, Error, Store, stored};

/// Most dead letters that are counted one by one, in all states together: each of them is read, and a page waits for it.
const COUNTED_MAX: usize = 10_000;

/// Whole hours: when the first one begins, and how many they are.
pub type Hours = (DateTime<Utc>, usize);

/// What the dead letters have in common that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLettersBy {
    /// Lane, fingerprint and target.
    Cause,
    /// Lane and target.
    Endpoint,
}

/// How many dead letters with something in common were written in each hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterHours {
    /// Whose they are.
    pub lane: DeadLetterLane,
    /// The fingerprint of the failure; empty where that is not asked for.
    pub fingerprint: String,
    /// Where it was.
    pub target: String,
    /// How many in each hour, the first hour first.
    pub counts: Vec<u64>,
}

/// When dead letters were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterTimeline {
    /// How many in each hour, those of groups that are not shown included.
    pub counts: Vec<u64>,
    /// The largest groups, the largest one first.
    pub groups: Vec<DeadLetterHours>,
    /// Whether counting was given up: then the earlier hours may have had more.
    pub at_least: bool,
}

/// The tallies of one group, in no order; several of an hour add up.
struct Tallied {
    lane: DeadLetterLane,
    fingerprint: String,
    target: String,
    /// Which hour each is of, the first one being 0.
    hours: Vec<i32>,
    letters: Vec<i64>,
}

/// What was counted one by one of a state, a kind and an hour.
#[derive(FromRow)]
struct Counted {
    state: String,
    lane: String,
    fingerprint: String,
    target: String,
    hour: i32,
    examined: i64,
    letters: i64,
}

/// The sums of so many hours, the first hour first. By a clock that is behind the database's, an hour may lie ahead; that one is left out.
pub(super) fn by_hour(tallies: impl IntoIterator<Item = (i32, i64)>, hours: usize) -> Vec<u64> {
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

/// When the last of the hours ends.
pub(super) fn end_of((since, hours): Hours) -> DateTime<Utc> {
    since + TimeDelta::hours(i64::try_from(hours).unwrap_or_default())
}

impl Store {
    /// How many dead letters that match a filter were written in each hour, and the same of the largest `limit` groups of them. The filter has no
    /// time and no job.
    pub async fn dead_letter_growth(
        &self,
        filter: &DeadLetterFilter,
        hours: Hours,
        (by, limit): (DeadLettersBy, u32),
    ) -> Result<DeadLetterTimeline, Error> {
        if !filter.is_by_tally() {
            return self.counted_by_hour(filter, hours, (by, limit)).await;
        }
        let counts = self.tallied_by_hour(filter, hours).await?;
        let groups = match limit {
            0 => Vec::new(),
            _ => self.groups_by_hour(filter, hours, (by, limit)).await?,
        };
        Ok(DeadLetterTimeline {
            counts,
            groups,
            at_least: false,
        })
    }

    /// The largest groups, as far as `filter` says state, lane, reason, fingerprint and target.
    async fn groups_by_hour(
        &self,
        filter: &DeadLetterFilter,
        (since, hours): Hours,
        (by, limit): (DeadLettersBy, u32),
    ) -> Result<Vec<DeadLetterHours>, Error> {
        let (fingerprint, prefix) = fingerprint_of(filter);
        let target = filter.target.as_deref().map(storable);
        let groups = sqlx::query_as!(
            Tallied,
            r#"
            SELECT lane AS "lane!: Name<_>", fingerprint AS "fingerprint!", target AS "target!",
                   array_agg((extract(epoch FROM hour - $7::timestamptz) / 3600)::integer) AS "hours!", array_agg(letters) AS "letters!"
            FROM (SELECT lane, CASE WHEN $9::boolean THEN fingerprint ELSE '' END AS fingerprint, target, hour, letters
                  FROM dead_letter_tallies
                  WHERE state = ANY ($1::text[]) AND lane = ANY ($2::text[]) AND reason = ANY ($3::text[])
                    AND ($4::text IS NULL OR fingerprint = $4 OR $5::boolean AND starts_with(fingerprint, $4))
                    AND ($6::text IS NULL OR target = $6) AND hour >= $7 AND hour < $8) AS t
            GROUP BY lane, fingerprint, target HAVING sum(letters) > 0
            ORDER BY sum(letters) DESC, lane, fingerprint, target LIMIT $10
            "#,
            &states_of(filter) as &[&str],
            &lanes_of(filter) as &[&str],
            &reasons_of(filter) as &[&str],
            fingerprint,
            prefix,
            target.as_deref(),
            since,
            end_of((since, hours)),
            by == DeadLettersBy::Cause,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        let groups = groups.into_iter().map(|group| DeadLetterHours {
            lane: group.lane,
            fingerprint: group.fingerprint,
            target: group.target,
            counts: by_hour(group.hours.into_iter().zip(group.letters), hours),
        });
        Ok(groups.collect())
    }

    /// The same of all groups together.
    async fn tallied_by_hour(
        &self,
        filter: &DeadLetterFilter,
        (since, hours): Hours,
    ) -> Result<Vec<u64>, Error> {
        let (fingerprint, prefix) = fingerprint_of(filter);
        let target = filter.target.as_deref().map(storable);
        let tallies = sqlx::query!(
            r#"
            SELECT (extract(epoch FROM hour - $7::timestamptz) / 3600)::integer AS "hour!", sum(letters)::bigint AS "letters!"
            FROM dead_letter_tallies
            WHERE state = ANY ($1::text[]) AND lane = ANY ($2::text[]) AND reason = ANY ($3::text[])
              AND ($4::text IS NULL OR fingerprint = $4 OR $5::boolean AND starts_with(fingerprint, $4))
              AND ($6::text IS NULL OR target = $6) AND hour >= $7 AND hour < $8
            GROUP BY hour HAVING sum(letters) > 0
            "#,
            &states_of(filter) as &[&str],
            &lanes_of(filter) as &[&str],
            &reasons_of(filter) as &[&str],
            fingerprint,
            prefix,
            target.as_deref(),
            since,
            end_of((since, hours)),
        )
        .fetch_all(&self.pool)
        .await?;
        let tallies = tallies.into_iter().map(|one| (one.hour, one.letters));
        Ok(by_hour(tallies, hours))
    }

    /// The newest dead letters of the streams in these hours, counted one by one: the tallies do not know reseller, subscription, event type and
    /// prototype.
    async fn counted_by_hour(
        &self,
        filter: &DeadLetterFilter,
        (since, hours): Hours,
        (by, limit): (DeadLettersBy, u32),
    ) -> Result<DeadLetterTimeline, Error> {
        let within = DeadLetterFilter {
            since: Some(since),
            until: Some(end_of((since, hours))),
            ..filter.clone()
        };
        let lead = Lead::of(&within);
        let of_each = COUNTED_MAX / lead.streams(&within).max(1);
        let of_each = i64::try_from(of_each).unwrap_or(i64::MAX);
        let mut query =
            QueryBuilder::<Postgres>::new("WITH examined AS MATERIALIZED (SELECT s.in_state AS state, l.*");
        lead.keys(&mut query, &within);
        query.push(" CROSS JOIN LATERAL (SELECT d.lane, d.fingerprint, d.target, d.created_at, (true");
        within.restrict(&mut query);
        query.push(") AS matches");
        lead.source(&mut query, &within);
        query
            .push(" ORDER BY d.created_at DESC, d.id DESC LIMIT ")
            .push_bind(of_each)
            .push(
                ") AS l)
                SELECT state, lane, fingerprint, target, (extract(epoch FROM hour_of(created_at) - ",
            )
            .push_bind(since)
            .push(
                "::timestamptz) / 3600)::integer AS hour, count(*) AS examined, count(*) FILTER (WHERE matches) AS letters
                FROM examined GROUP BY 1, 2, 3, 4, 5",
            );
        let rows: Vec<Counted> = query
            .build_query_as()
            .persistent(false)
            .fetch_all(&self.pool)
            .await?;
        let mut examined = BTreeMap::<&str, i64>::new();
        let mut groups = BTreeMap::<(&str, &str, &str), Vec<(i32, i64)>>::new();
        for row in &rows {
            *examined.entry(&row.state).or_default() += row.examined;
            let fingerprint = match by {
                DeadLettersBy::Cause => row.fingerprint.as_str(),
                DeadLettersBy::Endpoint => "",
            };
            if row.letters > 0 {
                let group = groups
                    .entry((row.lane.as_str(), fingerprint, row.target.as_str()))
                    .or_default();
                group.push((row.hour, row.letters));
            }
        }
        let groups = groups.into_iter().map(|((lane, fingerprint, target), letters)| {
            Ok::<_, Error>(DeadLetterHours {
                lane: stored("lane", lane)?,
                fingerprint: fingerprint.to_owned(),
                target: target.to_owned(),
                counts: by_hour(letters, hours),
            })
        });
        let mut groups: Vec<_> = groups.collect::<Result<_, _>>()?;
        groups.sort_by_key(|group| std::cmp::Reverse(group.counts.iter().sum::<u64>()));
        groups.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(DeadLetterTimeline {
            counts: by_hour(rows.iter().map(|row| (row.hour, row.letters)), hours),
            groups,
            at_least: examined.values().any(|count| *count >= of_each),
        })
    }
}

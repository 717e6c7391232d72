//! Dead letters by kind of failure: how many, since when, and one of them as an example.
//!
//! As far as the tallies know a filter, counts are exact and cost as much as there are kinds, and with a time as there are kinds and hours.
//! Otherwise dead letters are counted one by one, up to a limit; the answer says when it was reached.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, Postgres, QueryBuilder};
use uuid::Uuid;

use super::filter::DeadLetterFilter;
use super::kinds::{fingerprint_of, lanes_of, reasons_of, states_of};
use super::notes::{DeadLetterGroupKey, DeadLetterGroupNote};
use super::streams::Lead;
use crate::text::storable;
use crate::{DeadLetterLane, Error, Store, column, stored};

/// Most dead letters that are counted one by one.
const COUNTED_MAX: u32 = 100_000;

/// Dead letters by kind of failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterGroups {
    /// The largest groups, the largest one first.
    pub groups: Vec<DeadLetterGroup>,
    /// How many dead letters there are in all groups, those that are not shown included.
    pub total: u64,
    /// Whether counting was given up: then the counts say how many there are at least.
    pub at_least: bool,
}

/// The dead letters that have lane, fingerprint and target in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterGroup {
    /// Whose they are.
    pub lane: DeadLetterLane,
    /// The fingerprint of the failure.
    pub fingerprint: String,
    /// Where it was.
    pub target: String,
    /// How many there are.
    pub dead_letters: u64,
    /// When the first of them was written.
    pub first_seen: DateTime<Utc>,
    /// When the last of them was written.
    pub last_seen: DateTime<Utc>,
    /// The last of them.
    pub sample: Uuid,
    /// The failure of the last of them in words.
    pub detail: String,
    /// What operators have noted of them.
    pub note: Option<DeadLetterGroupNote>,
}

#[derive(FromRow)]
struct Row {
    lane: String,
    fingerprint: String,
    target: String,
    letters: i64,
    first_seen: DateTime<Utc>,
    last_seen: DateTime<Utc>,
    sample: Uuid,
    detail: String,
    total: i64,
    at_least: bool,
}

impl TryFrom<Row> for DeadLetterGroup {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            lane: stored("lane", &row.lane)?,
            fingerprint: row.fingerprint,
            target: row.target,
            dead_letters: row.letters.unsigned_abs(),
            first_seen: row.first_seen,
            last_seen: row.last_seen,
            sample: row.sample,
            detail: row.detail,
            note: None,
        })
    }
}

impl Store {
    /// The largest `limit` groups of the dead letters that match a filter.
    pub async fn group_dead_letters(
        &self,
        filter: &DeadLetterFilter,
        limit: u32,
    ) -> Result<DeadLetterGroups, Error> {
        let rows = if filter.is_by_tally() {
            self.groups_by_tally(filter, limit).await?
        } else {
            self.groups_by_dead_letter(filter, limit).await?
        };
        let (total, at_least) = match rows.first() {
            Some(row) => (row.total.unsigned_abs(), row.at_least),
            // Nothing that was counted matches, and no group tells whether counting was given up before one was found.
            None if !filter.is_by_tally() => self.count_dead_letters(filter, COUNTED_MAX).await?,
            None => (0, false),
        };
        let groups = rows.into_iter().map(DeadLetterGroup::try_from);
        let mut groups: Vec<DeadLetterGroup> = groups.collect::<Result<_, _>>()?;
        let keys = column(&groups, |group| DeadLetterGroupKey {
            lane: group.lane,
            fingerprint: group.fingerprint.clone(),
            target: group.target.clone(),
        });
        let notes = self.notes_of_groups(&keys).await?;
        for (group, note) in groups.iter_mut().zip(notes) {
            group.note = note;
        }
        Ok(DeadLetterGroups {
            groups,
            total,
            at_least,
        })
    }

    /// How many dead letters match a filter, and whether counting was given up: where the tallies do not know, after the newest `most` of those that
    /// an index finds.
    pub async fn count_dead_letters(
        &self,
        filter: &DeadLetterFilter,
        most: u32,
    ) -> Result<(u64, bool), Error> {
        if filter.is_by_tally() {
            let rows = self.groups_by_tally(filter, 1).await?;
            let first = rows.first();
            return Ok(first.map_or((0, false), |row| (row.total.unsigned_abs(), row.at_least)));
        }
        // Without groups: where nothing of what was counted matches there are none, and others may match.
        let mut query = self.examined(filter, i64::from(most)).await?;
        query
            .push(" SELECT count(*) FILTER (WHERE matches), count(*) >= ")
            .push_bind(i64::from(most))
            .push(" FROM examined");
        let (total, at_least): (i64, bool) = query
            .build_query_as()
            .persistent(false)
            .fetch_one(&self.pool)
            .await?;
        Ok((total.unsigned_abs(), at_least))
    }

    /// All time is counted by the totals, whole hours by their tallies; of an hour that `since` or `until` cuts, the dead letters are. An hour's end is
    /// no other hour's beginning, so that no dead letter is counted twice.
    async fn groups_by_tally(&self, filter: &DeadLetterFilter, limit: u32) -> Result<Vec<Row>, Error> {
        let (fingerprint, prefix) = fingerprint_of(filter);
        let target = filter.target.as_deref().map(storable);
        Ok(sqlx::query_file_as!(
            Row,
            "queries/dead_letters/groups_by_tally.sql",
            &states_of(filter) as &[&str],
            &lanes_of(filter) as &[&str],
            &reasons_of(filter) as &[&str],
            fingerprint,
            prefix,
            target.as_deref(),
            filter.since,
            filter.until,
            i64::from(COUNTED_MAX / 10),
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Begins a statement with the newest dead letters of the streams, `most` at most, and whether each matches.
    async fn examined(&self, filter: &DeadLetterFilter, most: i64) -> Result<QueryBuilder<Postgres>, Error> {
        let lead = match filter.job {
            Some(job) if self.has_resolved_at_most(job, most).await? => Lead::Job,
            _ => Lead::of(filter),
        };
        let mut query = QueryBuilder::new("WITH examined AS MATERIALIZED (SELECT l.*");
        lead.keys(&mut query, filter);
        query.push(
            " CROSS JOIN LATERAL (SELECT d.state, d.lane, d.fingerprint, d.target, d.created_at, d.id, (true",
        );
        filter.restrict(&mut query);
        query.push(") AS matches");
        lead.source(&mut query, filter);
        query
            .push(" ORDER BY d.created_at DESC, d.id DESC LIMIT ")
            .push_bind(most)
            .push(") AS l LIMIT ")
            .push_bind(most)
            .push(")");
        Ok(query)
    }

    /// The newest dead letters of the streams, counted one by one.
    async fn groups_by_dead_letter(&self, filter: &DeadLetterFilter, limit: u32) -> Result<Vec<Row>, Error> {
        let mut query = self.examined(filter, i64::from(COUNTED_MAX)).await?;
        query
            .push(
                ", kinds AS (
                    SELECT lane, fingerprint, target, count(*) AS letters, min(created_at) AS first_seen,
                           max(created_at) AS last_seen
                    FROM examined WHERE matches GROUP BY lane, fingerprint, target),
                largest AS (
                    SELECT k.*, sum(letters) OVER ()::bigint AS total FROM kinds k
                    ORDER BY letters DESC, lane, fingerprint, target LIMIT ",
            )
            .push_bind(i64::from(limit))
            .push(
                ")
                SELECT g.lane, g.fingerprint, g.target, g.letters, g.first_seen, g.last_seen, l.id AS sample, l.detail,
                       g.total, (SELECT count(*) FROM examined) >= ",
            )
            .push_bind(i64::from(COUNTED_MAX))
            .push(
                " AS at_least
                FROM largest g CROSS JOIN LATERAL (
                    SELECT d.id, d.detail FROM dead_letters d
                    WHERE d.lane = g.lane AND d.fingerprint = g.fingerprint AND d.target = g.target
                      AND d.created_at = g.last_seen AND d.state = ANY (",
            )
            .push_bind(states_of(filter).into_iter().map(str::to_owned).collect::<Vec<_>>())
            .push(")");
        filter.restrict(&mut query);
        query.push(
            " ORDER BY d.id DESC LIMIT 1) AS l
            ORDER BY g.letters DESC, g.lane, g.fingerprint, g.target",
        );
        Ok(query
            .build_query_as()
            .persistent(false)
            .fetch_all(&self.pool)
            .await?)
    }
}

//! Lists of dead letters by time, from any place on, in either direction.
//!
//! What the leading index does not know of a filter is asked of the dead letters in its streams, a bounded number at a time, so
//! that a page costs the same among ten of them and among ten million. A page may therefore be short, or empty, although
//! there is another one.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

use super::filter::DeadLetterFilter;
use super::kinds::kinds_of;
use super::streams::Lead;
use super::view::DeadLetterView;
use crate::indexes::LateIndex;
use crate::webhook::Page;
use crate::{Error, Store};

/// Which dead letter comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeadLetterOrder {
    /// The newest one.
    #[default]
    Newest,
    /// The oldest one.
    Oldest,
}

/// A place in a list: the time and the identifier of the dead letter before it.
pub type DeadLetterCursor = (DateTime<Utc>, Uuid);

/// How many dead letters the statements of a page look at, where not all match: most pages are full after the first ones, and those that are
/// not look at as many as can be looked at within half a second.
const EXAMINED: [usize; 7] = [1_000, 4_000, 16_000, 20_000, 20_000, 20_000, 20_000];
/// Most that one of them looks at.
const EXAMINED_MAX: usize = 20_000;

/// A stretch of a list: its dead letters that match, and where it ended if there may be more.
struct Stretch {
    matching: Vec<DeadLetterCursor>,
    next: Option<DeadLetterCursor>,
}

impl Store {
    /// Dead letters that match a filter, after `after`.
    pub async fn list_dead_letters(
        &self,
        filter: &DeadLetterFilter,
        order: DeadLetterOrder,
        after: Option<DeadLetterCursor>,
        limit: u32,
    ) -> Result<Page<DeadLetterView, DeadLetterCursor>, Error> {
        let limit = limit as usize;
        let lead = self.lead_of(filter, limit).await?;
        let mut found = Vec::new();
        let mut next = after;
        for examined in EXAMINED {
            let missing = limit + 1 - found.len();
            let depths = (examined, missing);
            let stretch = self.examine(filter, &lead, order, next, depths).await?;
            found.extend(stretch.matching);
            next = stretch.next;
            if found.len() > limit || next.is_none() {
                break;
            }
        }
        if found.len() > limit {
            found.truncate(limit);
            next = found.last().copied();
        }
        let ids: Vec<Uuid> = found.into_iter().map(|(_, id)| id).collect();
        Ok(Page {
            items: self.find_dead_letters(&ids).await?,
            next,
        })
    }

    /// The index that leads through a list. The kinds do when there are few enough of them to take the head of each, a job when it has
    /// resolved few enough to sort them.
    async fn lead_of(&self, filter: &DeadLetterFilter, limit: usize) -> Result<Lead, Error> {
        let lead = Lead::of(filter);
        if let Some(job) = filter.job {
            let most = i64::try_from(EXAMINED_MAX).unwrap_or(i64::MAX);
            let is_small = self.has_resolved_at_most(job, most).await?;
            return Ok(if is_small { Lead::Job } else { lead });
        }
        if !filter.names_kinds() {
            return Ok(lead);
        }
        let most = EXAMINED_MAX / (limit + 1);
        let kinds = kinds_of(&self.pool, filter, most + 1).await?;
        Ok(if kinds.len() > most {
            lead
        } else {
            Lead::Kinds(kinds)
        })
    }

    /// Whether a job has resolved `most` dead letters at most, as far as the index says that finds them.
    pub(super) async fn has_resolved_at_most(&self, job: Uuid, most: i64) -> Result<bool, Error> {
        if !self.has_index(LateIndex::DeadLettersByJob).await? {
            return Ok(false);
        }
        // In the order of its index: of a large job, a limit alone could have the planner read the table until it comes upon so many.
        let resolved = sqlx::query_scalar!(
            r#"SELECT count(*) AS "count!" FROM (SELECT FROM dead_letters WHERE job_id = $1 ORDER BY id LIMIT $2) AS resolved"#,
            job,
            most.saturating_add(1),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(resolved <= most)
    }

    async fn examine(
        &self,
        filter: &DeadLetterFilter,
        lead: &Lead,
        order: DeadLetterOrder,
        after: Option<DeadLetterCursor>,
        (examined, limit): (usize, usize),
    ) -> Result<Stretch, Error> {
        let depth = if lead.covers(filter) {
            limit
        } else {
            limit.max(examined / lead.streams(filter).max(1))
        };
        let mut query = statement(filter, lead, order, after, (depth, limit));
        let rows: Vec<(DateTime<Utc>, Uuid, bool)> = query
            .build_query_as()
            .persistent(false)
            .fetch_all(&self.pool)
            .await?;
        let last = rows.iter().find(|row| !row.2).map(|row| (row.0, row.1));
        let matching = rows.into_iter().filter(|row| row.2).map(|row| (row.0, row.1));
        Ok(Stretch {
            matching: matching.collect(),
            next: last,
        })
    }
}

/// Reads at most `depth` dead letters of the streams; of those that match the first `limit`, and the last one of all if `depth`
/// was reached, marked by `false`.
fn statement(
    filter: &DeadLetterFilter,
    lead: &Lead,
    order: DeadLetterOrder,
    after: Option<DeadLetterCursor>,
    (depth, limit): (usize, usize),
) -> QueryBuilder<Postgres> {
    let (sorted, beyond) = match order {
        DeadLetterOrder::Newest => (" ORDER BY created_at DESC, id DESC", "<"),
        DeadLetterOrder::Oldest => (" ORDER BY created_at, id", ">"),
    };
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let mut query = QueryBuilder::new("WITH examined AS (SELECT l.created_at, l.id, l.matches");
    lead.keys(&mut query, filter);
    query.push(" CROSS JOIN LATERAL (SELECT d.created_at, d.id, (true");
    if !lead.covers(filter) {
        filter.restrict(&mut query);
    }
    query.push(") AS matches");
    lead.source(&mut query, filter);
    if let Some((at, id)) = after {
        query
            .push(format_args!(" AND (d.created_at, d.id) {beyond} ("))
            .push_bind(at)
            .push(", ")
            .push_bind(id)
            .push(")");
    }
    query
        .push(sorted)
        .push(" LIMIT ")
        .push_bind(count(depth))
        .push(") AS l")
        .push(sorted)
        .push(" LIMIT ")
        .push_bind(count(depth))
        .push("), matching AS (SELECT created_at, id FROM examined WHERE matches")
        .push(sorted)
        .push(" LIMIT ")
        .push_bind(count(limit))
        .push(") SELECT created_at, id, true FROM (SELECT * FROM matching")
        .push(sorted)
        .push(") AS m UNION ALL SELECT created_at, id, false FROM (SELECT created_at, id FROM examined")
        .push(sorted)
        .push(" LIMIT 1 OFFSET ")
        .push_bind(count(depth) - 1)
        .push(") AS last");
    query
}

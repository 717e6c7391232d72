//! Dead letters by whose they are. The tallies do not know that, so the newest dead letters of each reseller are counted one by one, as many of
//! each as there are resellers for a bound on all together.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, Postgres, QueryBuilder};
use uuid::Uuid;

use super::filter::DeadLetterFilter;
use super::growth::{Hours, by_hour, end_of};
use super::kinds::states_of;
use crate::text::storable;
use crate::{DeadLetterLane, Error, Store};

/// Most dead letters that are counted, of all resellers together: each of them is read, and a page waits for it.
const COUNTED_MAX: usize = 10_000;
/// How many are counted of each reseller in each state however many there are.
const COUNTED_OF_EACH: usize = 10;

/// The dead letters of one reseller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResellerDeadLetters {
    /// Whose they are.
    pub reseller: String,
    /// How many there are.
    pub dead_letters: u64,
    /// Whether counting was given up in one of the states: then there are so many at least.
    pub at_least: bool,
    /// The most frequent fingerprint.
    pub fingerprint: String,
    /// When the first of them was written; of those that were counted, where counting was given up and not all of the reseller's match.
    pub first_seen: DateTime<Utc>,
    /// When the last of them was written.
    pub last_seen: DateTime<Utc>,
    /// How many of those that were counted were written in each hour, the first hour first.
    pub hours: Vec<u64>,
    /// The last of them.
    pub sample: Uuid,
    /// The failure of the last of them in words.
    pub detail: String,
}

/// Dead letters by whose they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadLettersByReseller {
    /// The resellers with the most dead letters, the one with most of them first.
    pub resellers: Vec<ResellerDeadLetters>,
    /// How many resellers have any, those that are not shown included.
    pub total: u64,
}

#[derive(FromRow)]
struct Row {
    reseller: String,
    letters: i64,
    at_least: bool,
    fingerprint: String,
    first_seen: DateTime<Utc>,
    last_seen: DateTime<Utc>,
    hours: Option<Vec<i32>>,
    in_hours: Option<Vec<i64>>,
    sample: Uuid,
    detail: String,
    resellers: i64,
}

impl Row {
    fn told(self, hours: usize) -> ResellerDeadLetters {
        let in_hours = self.hours.into_iter().flatten();
        let in_hours = in_hours.zip(self.in_hours.into_iter().flatten());
        ResellerDeadLetters {
            reseller: self.reseller,
            dead_letters: self.letters.unsigned_abs(),
            at_least: self.at_least,
            fingerprint: self.fingerprint,
            first_seen: self.first_seen,
            last_seen: self.last_seen,
            hours: by_hour(in_hours, hours),
            sample: self.sample,
            detail: self.detail,
        }
    }
}

impl Store {
    /// The `limit` resellers with the most dead letters that match a filter, with how many were written in each of these hours. A reseller of
    /// whose newest ones none matches may be left out.
    pub async fn dead_letters_by_reseller(
        &self,
        filter: &DeadLetterFilter,
        hours: Hours,
        limit: u32,
    ) -> Result<DeadLettersByReseller, Error> {
        // Pushes are of no reseller.
        if filter.lane == Some(DeadLetterLane::Push) {
            return Ok(DeadLettersByReseller::default());
        }
        let resellers = match &filter.reseller {
            Some(reseller) => vec![storable(reseller).into_owned()],
            None => self.resellers_with_dead_letters(filter).await?,
        };
        let of_each = (COUNTED_MAX / resellers.len().max(1)).max(COUNTED_OF_EACH);
        let rows = self
            .counted_of(resellers, filter, (of_each, limit, hours))
            .await?;
        Ok(DeadLettersByReseller {
            total: rows.first().map_or(0, |row| row.resellers.unsigned_abs()),
            resellers: rows.into_iter().map(|row| row.told(hours.1)).collect(),
        })
    }

    /// Steps from one reseller to the next in the index, whatever lies between.
    async fn resellers_with_dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<String>, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            WITH RECURSIVE found AS (
                SELECT s.state, (SELECT d.reseller_id FROM dead_letters d
                                 WHERE d.state = s.state AND d.reseller_id IS NOT NULL
                                 ORDER BY d.reseller_id LIMIT 1) AS reseller_id
                FROM UNNEST($1::text[]) AS s(state)
                UNION ALL
                SELECT f.state, (SELECT d.reseller_id FROM dead_letters d
                                 WHERE d.state = f.state AND d.reseller_id > f.reseller_id
                                 ORDER BY d.reseller_id LIMIT 1)
                FROM found f WHERE f.reseller_id IS NOT NULL)
            SELECT DISTINCT reseller_id AS "reseller_id!" FROM found WHERE reseller_id IS NOT NULL
            "#,
            &states_of(filter) as &[&str],
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// The newest dead letters of these resellers, `of_each` in each state.
    async fn counted_of(
        &self,
        resellers: Vec<String>,
        filter: &DeadLetterFilter,
        (of_each, limit, hours): (usize, u32, Hours),
    ) -> Result<Vec<Row>, Error> {
        let of_each = i64::try_from(of_each).unwrap_or(i64::MAX);
        let states: Vec<String> = states_of(filter).into_iter().map(str::to_owned).collect();
        let mut query = QueryBuilder::<Postgres>::new(
            "WITH kinds AS (
                SELECT r.of_reseller AS reseller, s.in_state AS state, l.fingerprint, l.hour, count(*) AS examined,
                       count(*) FILTER (WHERE l.matches) AS letters, min(l.created_at) FILTER (WHERE l.matches) AS first_seen,
                       max(l.created_at) FILTER (WHERE l.matches) AS last_seen
                FROM UNNEST(",
        );
        query
            .push_bind(states.clone())
            .push("::text[]) AS s(in_state) CROSS JOIN UNNEST(")
            .push_bind(resellers)
            .push(
                "::text[]) AS r(of_reseller)
                CROSS JOIN LATERAL (SELECT d.fingerprint, d.created_at, CASE WHEN d.created_at >= ",
            )
            .push_bind(hours.0)
            .push(" AND d.created_at < ")
            .push_bind(end_of(hours))
            .push(" THEN (extract(epoch FROM hour_of(d.created_at) - ")
            .push_bind(hours.0)
            .push("::timestamptz) / 3600)::integer END AS hour, (true");
        filter.restrict(&mut query);
        query.push(
            ") AS matches FROM dead_letters d WHERE d.state = s.in_state AND d.reseller_id = r.of_reseller",
        );
        push_times(&mut query, filter);
        query
            .push(" ORDER BY d.created_at DESC, d.id DESC LIMIT ")
            .push_bind(of_each)
            .push(
                ") AS l GROUP BY 1, 2, 3, 4),
                failures AS (
                    SELECT reseller, fingerprint, sum(letters) AS letters, min(first_seen) AS first_seen, max(last_seen) AS last_seen
                    FROM kinds GROUP BY reseller, fingerprint),
                most AS (
                    SELECT reseller, sum(letters)::bigint AS letters, max(last_seen) AS last_seen, min(first_seen) AS first_seen,
                           (array_agg(fingerprint ORDER BY letters DESC, fingerprint))[1] AS fingerprint,
                           count(*) OVER () AS resellers
                    FROM failures GROUP BY reseller HAVING sum(letters) > 0
                    ORDER BY 2 DESC, 3 DESC, 1 LIMIT ",
            )
            .push_bind(i64::from(limit))
            .push(
                "),
                given_up AS (
                    SELECT DISTINCT reseller FROM (
                        SELECT reseller FROM kinds GROUP BY reseller, state HAVING sum(examined) >= ",
            )
            .push_bind(of_each)
            .push(
                ") AS k),
                written AS (
                    SELECT reseller, array_agg(hour) AS hours, array_agg(letters::bigint) AS in_hours
                    FROM (SELECT reseller, hour, sum(letters) AS letters FROM kinds WHERE hour IS NOT NULL
                          GROUP BY reseller, hour) AS k
                    GROUP BY reseller)
                SELECT m.reseller, m.letters, g.reseller IS NOT NULL AS at_least, m.fingerprint, ",
            );
        if is_all_of_reseller(filter) {
            // What was not counted may be older: the index has the first one at its end.
            query
                .push(
                    "CASE WHEN g.reseller IS NULL THEN m.first_seen ELSE (
                        SELECT min(f.created_at) FROM UNNEST(",
                )
                .push_bind(states.clone())
                .push(
                    "::text[]) AS s(in_state) CROSS JOIN LATERAL (
                            SELECT d.created_at FROM dead_letters d WHERE d.state = s.in_state AND d.reseller_id = m.reseller",
                );
            push_times(&mut query, filter);
            query.push(" ORDER BY d.created_at, d.id LIMIT 1) AS f) END AS first_seen");
        } else {
            query.push("m.first_seen");
        }
        query
            .push(
                ", m.last_seen, w.hours, w.in_hours, n.id AS sample, n.detail, m.resellers
                FROM most m LEFT JOIN given_up g USING (reseller) LEFT JOIN written w USING (reseller) CROSS JOIN LATERAL (
                    SELECT d.id, d.detail FROM dead_letters d
                    WHERE d.reseller_id = m.reseller AND d.created_at = m.last_seen AND d.state = ANY (",
            )
            .push_bind(states)
            .push(")");
        filter.restrict(&mut query);
        query.push(
            " ORDER BY d.id DESC LIMIT 1) AS n
            ORDER BY m.letters DESC, m.last_seen DESC, m.reseller",
        );
        Ok(query
            .build_query_as()
            .persistent(false)
            .fetch_all(&self.pool)
            .await?)
    }
}

/// Whether it restricts nothing but state, reseller and time, so that all dead letters of a reseller match that its index finds.
fn is_all_of_reseller(filter: &DeadLetterFilter) -> bool {
    let rest = DeadLetterFilter {
        state: None,
        reseller: None,
        since: None,
        until: None,
        ..filter.clone()
    };
    rest == DeadLetterFilter::default()
}

/// Appends the times of a filter, which the indexes know.
fn push_times(query: &mut QueryBuilder<Postgres>, filter: &DeadLetterFilter) {
    if let Some(since) = filter.since {
        query.push(" AND d.created_at >= ").push_bind(since);
    }
    if let Some(until) = filter.until {
        query.push(" AND d.created_at < ").push_bind(until);
    }
}

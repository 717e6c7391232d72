//! Dead letters by whose they are. The tallies do not know that, so the newest dead letters of each reseller are counted one by one, as many of
//! each as there are resellers for a bound on all together.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, Postgres, QueryBuilder};
use uuid::Uuid;

use super::filter::DeadLetterFilter;
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
    /// When the last of them was written.
    pub last_seen: DateTime<Utc>,
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
    last_seen: DateTime<Utc>,
    sample: Uuid,
    detail: String,
    resellers: i64,
}

impl From<Row> for ResellerDeadLetters {
    fn from(row: Row) -> Self {
        Self {
            reseller: row.reseller,
            dead_letters: row.letters.unsigned_abs(),
            at_least: row.at_least,
            fingerprint: row.fingerprint,
            last_seen: row.last_seen,
            sample: row.sample,
            detail: row.detail,
        }
    }
}

impl Store {
    /// The `limit` resellers with the most dead letters that match a filter. A reseller of whose newest ones none matches may be left out.
    pub async fn dead_letters_by_reseller(
        &self,
        filter: &DeadLetterFilter,
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
        let rows = self.counted_of(resellers, filter, (of_each, limit)).await?;
        Ok(DeadLettersByReseller {
            total: rows.first().map_or(0, |row| row.resellers.unsigned_abs()),
            resellers: rows.into_iter().map(ResellerDeadLetters::from).collect(),
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
        (of_each, limit): (usize, u32),
    ) -> Result<Vec<Row>, Error> {
        let of_each = i64::try_from(of_each).unwrap_or(i64::MAX);
        let states: Vec<String> = states_of(filter).into_iter().map(str::to_owned).collect();
        let mut query = QueryBuilder::<Postgres>::new(
            "WITH kinds AS (
                SELECT r.of_reseller AS reseller, s.in_state AS state, l.fingerprint, count(*) AS examined,
                       count(*) FILTER (WHERE l.matches) AS letters, max(l.created_at) FILTER (WHERE l.matches) AS last_seen
                FROM UNNEST(",
        );
        query
            .push_bind(states.clone())
            .push("::text[]) AS s(in_state) CROSS JOIN UNNEST(")
            .push_bind(resellers)
            .push(
                "::text[]) AS r(of_reseller)
                CROSS JOIN LATERAL (SELECT d.fingerprint, d.created_at, (true",
            );
        filter.restrict(&mut query);
        query.push(
            ") AS matches FROM dead_letters d WHERE d.state = s.in_state AND d.reseller_id = r.of_reseller",
        );
        if let Some(since) = filter.since {
            query.push(" AND d.created_at >= ").push_bind(since);
        }
        if let Some(until) = filter.until {
            query.push(" AND d.created_at < ").push_bind(until);
        }
        query
            .push(" ORDER BY d.created_at DESC, d.id DESC LIMIT ")
            .push_bind(of_each)
            .push(
                ") AS l GROUP BY 1, 2, 3),
                failures AS (
                    SELECT reseller, fingerprint, sum(letters) AS letters, max(last_seen) AS last_seen
                    FROM kinds GROUP BY reseller, fingerprint),
                most AS (
                    SELECT reseller, sum(letters)::bigint AS letters, max(last_seen) AS last_seen,
                           (array_agg(fingerprint ORDER BY letters DESC, fingerprint))[1] AS fingerprint,
                           count(*) OVER () AS resellers
                    FROM failures GROUP BY reseller HAVING sum(letters) > 0
                    ORDER BY 2 DESC, 3 DESC, 1 LIMIT ",
            )
            .push_bind(i64::from(limit))
            .push(
                ")
                SELECT m.*, n.id AS sample, n.detail,
                       EXISTS (SELECT FROM kinds k WHERE k.reseller = m.reseller
                               GROUP BY k.state HAVING sum(k.examined) >= ",
            )
            .push_bind(of_each)
            .push(
                ") AS at_least
                FROM most m CROSS JOIN LATERAL (
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

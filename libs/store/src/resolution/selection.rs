//! Which open dead letters a job is about: counting them, and finding the next ones in the order of time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::error::BoxDynError;
use sqlx::postgres::PgValueRef;
use sqlx::{Decode, PgConnection, Postgres, QueryBuilder};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::dead_letters::kinds::{Kind, kinds_of};
use crate::{DeadLetterFilter, DeadLetterLane, DeadLetterReason, DeadLetterState, Error, Store, stored};

/// The dead letters that a caller has chosen. Only open ones are meant, whatever the filter says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeadLetterSelection {
    /// These.
    DeadLetters(Vec<Uuid>),
    /// All that match.
    Matching(DeadLetterFilter),
}

/// A kind of failure, and how many of the dead letters are of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DeadLetterKindCount)]
pub struct DeadLetterKind {
    /// Its lane.
    #[schema(value_type = String, example = "push")]
    pub lane: DeadLetterLane,
    /// What the failures have in common.
    #[schema(example = "swrve/503")]
    pub fingerprint: String,
    /// How many dead letters.
    pub count: u64,
}

/// What a job would be about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterPreview)]
pub struct Preview {
    /// How many dead letters.
    pub matching: u64,
    /// By kind of failure, the most frequent first.
    #[serde(rename = "byFingerprint")]
    pub kinds: Vec<DeadLetterKind>,
    /// When the oldest of them was made.
    pub oldest: Option<DateTime<Utc>>,
    /// When the newest was.
    pub newest: Option<DateTime<Utc>>,
    /// Of a replay: how many of those that come first were looked at for `skipped` and `byEventType`; at most 1,000.
    pub sampled: u64,
    /// How many of those a replay would leave as they are now, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// How many of those are of events of which type; those of pushes are of none.
    #[schema(example = json!({"domain.created": 42}))]
    pub by_event_type: BTreeMap<String, u64>,
}

/// Most groups whose counts are added up; of more, dead letters are counted one by one.
const GROUPS_MAX: u32 = 10_000;
/// Most dead letters that are looked at to say what a replay would leave as it is, and of which event types it is.
const SAMPLE_MAX: i64 = 1_000;

impl<'r> Decode<'r, Postgres> for DeadLetterSelection {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(Self::from_json(&Value::decode(value)?)?)
    }
}

impl DeadLetterSelection {
    /// The selection as a job keeps it.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::DeadLetters(ids) => json!({ "ids": ids }),
            Self::Matching(filter) => filter.to_json(),
        }
    }

    /// Reads back what [`DeadLetterSelection::to_json`] has written.
    pub(super) fn from_json(value: &Value) -> Result<Self, Error> {
        let Some(ids) = value.get("ids") else {
            return Ok(Self::Matching(DeadLetterFilter::from_json(value)?));
        };
        let corrupt = || Error::Corrupt {
            what: "selection of dead letters",
            found: ids.to_string(),
        };
        let read = |id: &Value| id.as_str()?.parse().ok();
        let ids = ids.as_array().ok_or_else(corrupt)?;
        let ids: Option<Vec<Uuid>> = ids.iter().map(read).collect();
        Ok(Self::DeadLetters(ids.ok_or_else(corrupt)?))
    }

    /// Appends its conditions on `dead_letters`.
    fn restrict(&self, query: &mut QueryBuilder<Postgres>) {
        match self {
            Self::DeadLetters(ids) => {
                query
                    .push(" AND state = 'OPEN' AND id = ANY (")
                    .push_bind(ids.clone())
                    .push(")");
            }
            Self::Matching(filter) => open(filter).restrict(query),
        }
    }
}

fn open(filter: &DeadLetterFilter) -> DeadLetterFilter {
    DeadLetterFilter {
        state: Some(DeadLetterState::Open),
        ..filter.clone()
    }
}

impl Store {
    /// Counts what a job would be about, now.
    pub async fn preview_dead_letters(&self, selection: &DeadLetterSelection) -> Result<Preview, Error> {
        if let Some(preview) = self.preview_by_tally(selection).await? {
            return Ok(preview);
        }
        let mut connection = self.pool.acquire().await?;
        preview(&mut connection, selection).await
    }

    /// What the tallies say, which costs as much as there are kinds of failures, if they know all that the filter asks for.
    async fn preview_by_tally(&self, selection: &DeadLetterSelection) -> Result<Option<Preview>, Error> {
        let DeadLetterSelection::Matching(filter) = selection else {
            return Ok(None);
        };
        let filter = open(filter);
        if !filter.is_by_tally() {
            return Ok(None);
        }
        let found = self.group_dead_letters(&filter, GROUPS_MAX).await?;
        let counted: u64 = found.groups.iter().map(|group| group.dead_letters).sum();
        if found.at_least || counted < found.total {
            return Ok(None);
        }
        let mut kinds = BTreeMap::new();
        for group in &found.groups {
            let kind = kinds
                .entry((group.lane.as_str(), &group.fingerprint))
                .or_insert_with(|| DeadLetterKind {
                    lane: group.lane,
                    fingerprint: group.fingerprint.clone(),
                    count: 0,
                });
            kind.count += group.dead_letters;
        }
        let mut kinds: Vec<_> = kinds.into_values().collect();
        // Those of the same number stay by lane and fingerprint.
        kinds.sort_by_key(|kind| Reverse(kind.count));
        Ok(Some(Preview {
            matching: counted,
            kinds,
            oldest: found.groups.iter().map(|group| group.first_seen).min(),
            newest: found.groups.iter().map(|group| group.last_seen).max(),
            ..Preview::default()
        }))
    }

    /// As [`Store::preview_dead_letters`], of a replay: also says of those that come first what would be skipped, and of which event types they are.
    pub async fn preview_replay(
        &self,
        selection: &DeadLetterSelection,
        newest_first: bool,
    ) -> Result<Preview, Error> {
        let mut preview = self.preview_dead_letters(selection).await?;
        let mut connection = self.pool.acquire().await?;
        let part = Part {
            cursor: None,
            newest_first,
            until: preview.newest.unwrap_or_default() + TimeDelta::microseconds(1),
            limit: SAMPLE_MAX,
            by_endpoint: false,
        };
        let first = next(&mut connection, selection, part).await?;
        let ids: Vec<Uuid> = first.into_iter().map(|(_, id)| id).collect();
        preview.sample(&mut connection, &ids).await?;
        Ok(preview)
    }

    /// Counts what a job would be about, now, but not further than `most`.
    pub async fn count_dead_letters_up_to(
        &self,
        selection: &DeadLetterSelection,
        most: u64,
    ) -> Result<u64, Error> {
        let mut connection = self.pool.acquire().await?;
        count_up_to(&mut connection, selection, most).await
    }
}

impl Preview {
    /// Says of which event types these dead letters are, and why a replay would leave some as they are. The rules are those of
    /// [`super::apply`], which decides when it comes to it.
    async fn sample(&mut self, connection: &mut PgConnection, ids: &[Uuid]) -> Result<(), Error> {
        let rows = sqlx::query!(
            r#"
            SELECT f.fate, f.event_type, count(*) AS "count!"
            FROM (
                SELECT d.event_type,
                       CASE
                           WHEN d.push_id IS NULL AND d.notification_id IS NULL THEN 'MALFORMED'
                           WHEN p.id IS NULL AND n.id IS NULL THEN 'GONE'
                           WHEN coalesce(p.status, n.status) = 'SENT' THEN 'DELIVERED'
                           WHEN coalesce(p.status, n.status) NOT IN ('FAILED', 'GIVEN_UP') THEN 'UNFINISHED'
                           WHEN coalesce(p.status, n.status) = 'GIVEN_UP' AND coalesce(p.reason, n.reason) = 'CANCELLED' THEN 'CANCELLED'
                           WHEN n.id IS NOT NULL AND coalesce(s.state, '') NOT IN ('ACTIVE', 'DEGRADED') THEN 'SUBSCRIPTION_INACTIVE'
                       END AS fate
                FROM UNNEST($1::uuid[]) AS i(id)
                JOIN dead_letters d ON d.id = i.id
                LEFT JOIN push_notifications p ON p.id = d.push_id
                LEFT JOIN notifications n ON n.id = d.notification_id
                LEFT JOIN subscriptions s ON s.id = n.subscription_id AND s.deleted_at IS NULL) AS f
            GROUP BY f.fate, f.event_type
            "#,
            ids,
        )
        .fetch_all(connection)
        .await?;
        self.sampled = ids.len() as u64;
        for row in rows {
            for (counts, name) in [
                (&mut self.skipped, row.fate),
                (&mut self.by_event_type, row.event_type),
            ] {
                if let Some(name) = name {
                    *counts.entry(name).or_default() += row.count.unsigned_abs();
                }
            }
        }
        Ok(())
    }
}

/// Counts what was there when the transaction began, but not further than `most`: a job about a few hundred need not count a million.
pub(super) async fn count_up_to(
    connection: &mut PgConnection,
    selection: &DeadLetterSelection,
    most: u64,
) -> Result<u64, Error> {
    let mut query =
        QueryBuilder::new("SELECT count(*) FROM (SELECT FROM dead_letters WHERE created_at < now()");
    selection.restrict(&mut query);
    query
        .push(" LIMIT ")
        .push_bind(i64::try_from(most).unwrap_or(i64::MAX));
    query.push(") AS letters");
    let count: i64 = query.build_query_scalar().fetch_one(connection).await?;
    Ok(count.unsigned_abs())
}

/// Lane, fingerprint, count, oldest and newest.
type KindRow = (String, String, i64, DateTime<Utc>, DateTime<Utc>);

/// As [`Store::preview_dead_letters`], of what was there when the transaction began.
async fn preview(connection: &mut PgConnection, selection: &DeadLetterSelection) -> Result<Preview, Error> {
    let mut query = QueryBuilder::new(
        "SELECT lane, fingerprint, count(*), min(created_at), max(created_at) FROM dead_letters WHERE created_at < now()",
    );
    selection.restrict(&mut query);
    query.push(" GROUP BY lane, fingerprint ORDER BY count(*) DESC, lane, fingerprint");
    let rows: Vec<KindRow> = query.build_query_as().fetch_all(connection).await?;
    let mut preview = Preview::default();
    for (lane, fingerprint, count, oldest, newest) in rows {
        let count = count.unsigned_abs();
        preview.matching += count;
        preview.oldest = preview.oldest.map_or(Some(oldest), |at| Some(at.min(oldest)));
        preview.newest = preview.newest.max(Some(newest));
        preview.kinds.push(DeadLetterKind {
            lane: stored("lane", &lane)?,
            fingerprint,
            count,
        });
    }
    Ok(preview)
}

/// Where a job has got to in the order of time.
pub(super) type Cursor = (DateTime<Utc>, Uuid);

/// Which part of the chosen dead letters is next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// After this one; from the beginning when missing.
    pub(super) cursor: Option<Cursor>,
    /// Whether the newest come first.
    pub(super) newest_first: bool,
    /// There before this time.
    pub(super) until: DateTime<Utc>,
    /// At most so many.
    pub(super) limit: i64,
    /// Only what a failing endpoint has caused: nothing of ours, and nothing that waited for too long.
    pub(super) by_endpoint: bool,
}

/// The next chosen dead letters, in the order of time.
pub(super) async fn next(
    connection: &mut PgConnection,
    selection: &DeadLetterSelection,
    part: Part,
) -> Result<Vec<Cursor>, Error> {
    let Part {
        cursor,
        newest_first,
        until,
        limit,
        by_endpoint,
    } = part;
    let (beyond, order) = if newest_first {
        (" < (", "created_at DESC, id DESC")
    } else {
        (" > (", "created_at, id")
    };
    let branches = branches(connection, selection).await?;
    if branches.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = QueryBuilder::new("SELECT created_at, id FROM (");
    for (index, branch) in branches.iter().enumerate() {
        query.push(if index == 0 { "(" } else { ") UNION ALL (" });
        query.push("SELECT created_at, id FROM dead_letters WHERE created_at < ");
        query.push_bind(until);
        branch.restrict(&mut query);
        if by_endpoint {
            // Said again by constants, without which the index of just these dead letters could not be used.
            query.push(
                " AND state = 'OPEN' AND lane = 'reseller' AND reason = 'GIVEN_UP' AND error_type <> 'OTHER'",
            );
        }
        if let Some((at, id)) = cursor {
            query.push(" AND (created_at, id)").push(beyond).push_bind(at);
            query.push(", ").push_bind(id).push(")");
        }
        query.push(" ORDER BY ").push(order);
        query.push(" LIMIT ").push_bind(limit);
    }
    query.push(")) AS letters ORDER BY ").push(order);
    query.push(" LIMIT ").push_bind(limit);
    let letters = query
        .build_query_as()
        .persistent(false)
        .fetch_all(connection)
        .await?;
    Ok(letters)
}

/// Most kinds of failures that a selection is read by; of more, planning costs more than it saves.
const KINDS_MAX: usize = 100;

/// The selection in parts, each of which is a range of an index in the order of time: the whole would have to be sorted for every step of a job.
/// Where it names kinds of failures these are the parts, since by lane and reason all others are read until enough of them are found.
async fn branches(
    connection: &mut PgConnection,
    selection: &DeadLetterSelection,
) -> Result<Vec<DeadLetterSelection>, Error> {
    let DeadLetterSelection::Matching(filter) = selection else {
        return Ok(vec![selection.clone()]);
    };
    let filter = open(filter);
    if filter.names_kinds() {
        let kinds = kinds_of(connection, &filter, KINDS_MAX + 1).await?;
        // An asterisk at its end stands for anything, also where it was meant as one.
        if kinds.len() <= KINDS_MAX && kinds.iter().all(|kind| !kind.fingerprint.ends_with('*')) {
            let branch = |kind: Kind| {
                Ok(DeadLetterSelection::Matching(DeadLetterFilter {
                    lane: Some(stored("lane", &kind.lane)?),
                    fingerprint: Some(kind.fingerprint),
                    target: Some(kind.target),
                    ..filter.clone()
                }))
            };
            return kinds.into_iter().map(branch).collect();
        }
    }
    let lanes = DeadLetterLane::ALL.into_iter();
    let lanes = lanes.filter(|lane| filter.lane.is_none_or(|meant| meant == *lane));
    let reasons = DeadLetterReason::ALL.into_iter();
    let reasons = reasons.filter(|reason| filter.reason.is_none_or(|meant| meant == *reason));
    let each = lanes.flat_map(|lane| reasons.clone().map(move |reason| (lane, reason)));
    let branch = |(lane, reason)| {
        DeadLetterSelection::Matching(DeadLetterFilter {
            lane: Some(lane),
            reason: Some(reason),
            ..filter.clone()
        })
    };
    Ok(each.map(branch).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_read_back_as_it_was_kept() {
        let ids = vec![Uuid::from_u128(1), Uuid::from_u128(2)];
        for selection in [
            DeadLetterSelection::DeadLetters(ids),
            DeadLetterSelection::Matching(DeadLetterFilter::default()),
        ] {
            assert_eq!(
                DeadLetterSelection::from_json(&selection.to_json()).unwrap(),
                selection
            );
        }
        assert!(DeadLetterSelection::from_json(&json!({ "ids": ["x"] })).is_err());
        assert!(DeadLetterSelection::from_json(&json!({ "ids": 1 })).is_err());
    }
}

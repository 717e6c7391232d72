//! Which kinds of failures there are among the dead letters, from their totals: it costs as much as there are kinds,
//! however many of them there are.

use sqlx::PgExecutor;

use super::filter::{DeadLetterFilter, DeadLetterReason, DeadLetterState};
use crate::text::storable;
use crate::{DeadLetterLane, Error};

/// Dead letters that have lane, fingerprint and target in common.
pub(crate) struct Kind {
    pub(crate) lane: String,
    pub(crate) fingerprint: String,
    pub(crate) target: String,
}

/// A filter's fingerprint as the statements take it, and whether it is only the beginning of one.
pub(super) fn fingerprint_of(filter: &DeadLetterFilter) -> (Option<String>, bool) {
    match filter.fingerprint.as_deref() {
        None => (None, false),
        Some(text) => match text.strip_suffix('*') {
            Some(start) => (Some(storable(start).into_owned()), true),
            None => (Some(storable(text).into_owned()), false),
        },
    }
}

/// The states that a filter lets through. What a job has resolved is not open.
pub(super) fn states_of(filter: &DeadLetterFilter) -> Vec<&'static str> {
    let all = DeadLetterState::ALL.into_iter();
    all.filter(|state| filter.state.is_none_or(|wanted| wanted == *state))
        .filter(|state| filter.job.is_none() || *state != DeadLetterState::Open)
        .map(DeadLetterState::as_str)
        .collect()
}

/// The reasons that a filter lets through.
pub(super) fn reasons_of(filter: &DeadLetterFilter) -> Vec<&'static str> {
    let all = DeadLetterReason::ALL.into_iter();
    all.filter(|reason| filter.reason.is_none_or(|wanted| wanted == *reason))
        .map(DeadLetterReason::as_str)
        .collect()
}

/// The lanes that a filter lets through.
pub(super) fn lanes_of(filter: &DeadLetterFilter) -> Vec<&'static str> {
    let all = DeadLetterLane::ALL.into_iter();
    all.filter(|lane| filter.lane.is_none_or(|wanted| wanted == *lane))
        .map(DeadLetterLane::as_str)
        .collect()
}

/// The kinds that there are dead letters of, as far as a filter says state, lane, reason, fingerprint or target; at most `limit`.
pub(crate) async fn kinds_of(
    executor: impl PgExecutor<'_>,
    filter: &DeadLetterFilter,
    limit: usize,
) -> Result<Vec<Kind>, Error> {
    let (fingerprint, prefix) = fingerprint_of(filter);
    let target = filter.target.as_deref().map(storable);
    Ok(sqlx::query_as!(
        Kind,
        r#"
        SELECT lane AS "lane!", fingerprint AS "fingerprint!", target AS "target!"
        FROM dead_letter_totals
        WHERE state = ANY ($1::text[]) AND lane = ANY ($2::text[]) AND reason = ANY ($3::text[])
          AND ($4::text IS NULL OR fingerprint = $4 OR $5::boolean AND starts_with(fingerprint, $4))
          AND ($6::text IS NULL OR target = $6)
        GROUP BY lane, fingerprint, target HAVING sum(letters) > 0
        LIMIT $7
        "#,
        &states_of(filter) as &[&str],
        &lanes_of(filter) as &[&str],
        &reasons_of(filter) as &[&str],
        fingerprint,
        prefix,
        target.as_deref(),
        i64::try_from(limit).unwrap_or(i64::MAX),
    )
    .fetch_all(executor)
    .await?)
}

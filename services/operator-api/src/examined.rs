//! Lists that are found by looking at a bounded number of rows, and words in a query string that they share.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use http_api::{Problem, paging};
use serde::Serialize;
use store::Examined;
use utoipa::ToSchema;

use crate::dead_letters::filter;

/// A part of a list for which a bounded number of rows was looked at.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Part<T> {
    /// What is in it.
    pub(crate) items: Vec<T>,
    /// The `cursor` with which the list goes on; null when it has ended. A part that a filter has thinned out, even to nothing, may be
    /// followed by others.
    pub(crate) next: Option<String>,
    /// How many rows were looked at for this part.
    #[schema(example = 51)]
    pub(crate) examined: u64,
}

impl<T> Part<T> {
    /// A part as it was found.
    pub(crate) fn of<R>(found: Examined<R>, show: impl Fn(R) -> T) -> Self {
        Self {
            items: found.items.into_iter().map(show).collect(),
            next: found.next.map(paging::write_at),
            examined: found.examined,
        }
    }
}

/// A word of a parameter that has to be one of `possible`.
pub(crate) fn word<T: FromStr>(
    parameter: &'static str,
    given: Option<&str>,
    possible: &str,
) -> Result<Option<T>, Problem> {
    Ok(filter::word(parameter, given, possible, "")?)
}

/// A text of a parameter, which must hold something.
pub(crate) fn text(parameter: &'static str, given: Option<&str>) -> Result<Option<String>, Problem> {
    Ok(filter::text(parameter, given)?)
}

/// An event type of the parameter `eventType`. A pattern would match nothing, as if there were nothing.
pub(crate) fn event_type(given: Option<&str>) -> Result<Option<String>, Problem> {
    Ok(given.map(filter::event_type).transpose()?)
}

/// A time of a parameter.
pub(crate) fn time(parameter: &'static str, given: Option<DateTime<Utc>>) -> Result<(), Problem> {
    filter::time(parameter, given)?;
    Ok(())
}

/// Since when, and until when.
pub(crate) type Times = (Option<DateTime<Utc>>, Option<DateTime<Utc>>);

/// The times that a list begins and ends at.
pub(crate) fn times(since: Option<DateTime<Utc>>, until: Option<DateTime<Utc>>) -> Result<Times, Problem> {
    let (since, until) = (filter::time("since", since)?, filter::time("until", until)?);
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        return Err(Problem::query("until", "must be later than since"));
    }
    Ok((since, until))
}

/// What is asked for needs an index that an upgrade is still making.
pub(crate) fn not_indexed() -> Problem {
    Problem::unavailable(
        "the index that finds this is still being made: retry-worker does it after an upgrade, within minutes",
        60,
    )
}

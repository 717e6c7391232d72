//! Lists that are found by looking at a bounded number of rows, and words in a query string that they share.

use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use http_api::{FieldCode, Problem, WrongQuery, paging};
use serde::Serialize;
use store::Examined;
use utoipa::ToSchema;

use crate::dead_letters::filter;

/// A part of a list for which a bounded number of rows was looked at.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part<T> {
    /// What is in it.
    pub(crate) items: Vec<T>,
    /// The `cursor` with which the list goes on; null when it has ended. A part that a filter has thinned out, even to nothing, may be
    /// followed by others.
    pub(crate) next: Option<String>,
    /// How many rows were looked at for this part.
    #[schema(example = 51)]
    pub(crate) examined: u64,
    /// Of a part that is short, because no more rows are looked at for one: all that was accepted after this time was looked at. Null of other
    /// parts, and of lists that do not begin with the newest.
    pub(crate) looked_back_to: Option<DateTime<Utc>>,
}

impl<T> Part<T> {
    /// A part as it was found.
    pub(crate) fn of<R>(found: Examined<R>, show: impl Fn(R) -> T) -> Self {
        Self {
            items: found.items.into_iter().map(show).collect(),
            next: found.next.map(paging::write_at),
            examined: found.examined,
            looked_back_to: None,
        }
    }

    /// The same of a list that begins with the newest, of which `limit` were asked for.
    pub(crate) fn newest_first<R>(found: Examined<R>, limit: u32, show: impl Fn(R) -> T) -> Self {
        let is_short = found.items.len() < limit as usize;
        let looked_back_to = found.next.filter(|_| is_short).map(|(at, _)| at);
        Self {
            looked_back_to,
            ..Self::of(found, show)
        }
    }
}

/// A word of a parameter that has to be one of `possible`.
pub(crate) fn word<T: FromStr>(
    parameter: &'static str,
    given: Option<&str>,
    possible: &str,
) -> Result<Option<T>, Problem> {
    filter::word(parameter, given, possible, "").map_err(Problem::parameter)
}

/// A text of a parameter, which must hold something.
pub(crate) fn text(parameter: &'static str, given: Option<&str>) -> Result<Option<String>, Problem> {
    filter::text(parameter, given).map_err(Problem::parameter)
}

/// An event type of the parameter `eventType`. A pattern would match nothing, as if there were nothing.
pub(crate) fn event_type(given: Option<&str>) -> Result<Option<String>, Problem> {
    let read = given.map(filter::event_type).transpose();
    read.map_err(Problem::parameter)
}

/// A time of a parameter.
fn time(parameter: &'static str, given: Option<DateTime<Utc>>) -> Result<(), Problem> {
    filter::time(parameter, given).map_err(Problem::parameter)?;
    Ok(())
}

/// Since when, and until when.
pub(crate) type Times = (Option<DateTime<Utc>>, Option<DateTime<Utc>>);

/// The times that a list begins and ends at.
pub(crate) fn times(since: Option<DateTime<Utc>>, until: Option<DateTime<Utc>>) -> Result<Times, Problem> {
    let mut wrong = WrongQuery::default();
    wrong.take(time("since", since));
    wrong.take(time("until", until));
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        wrong.add(Problem::query("until", "must be later than since").coded(FieldCode::Conflict));
    }
    wrong.with(Ok((since, until)))
}

/// When what is looked for ended. `can_have_ended` says whether all that is asked for may have.
pub(crate) fn ended(
    since: Option<DateTime<Utc>>,
    until: Option<DateTime<Utc>>,
    can_have_ended: bool,
) -> Result<Times, Problem> {
    let mut wrong = WrongQuery::default();
    for (name, at) in [("endedSince", since), ("endedUntil", until)] {
        wrong.take(time(name, at));
        if at.is_some() && !can_have_ended {
            let detail = "is of what has ended: leave it out, or ask for SENT, FAILED or GIVEN_UP";
            wrong.add(Problem::query(name, detail).coded(FieldCode::Conflict));
        }
    }
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        wrong.add(Problem::query("endedUntil", "must be later than endedSince").coded(FieldCode::Conflict));
    }
    wrong.with(Ok((since, until)))
}

/// Before when what ended before `ended_until` was accepted, by a clock that may be a little ahead of the one that it ended by.
pub(crate) fn accepted_until(ended_until: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    ended_until.map(|until| until + TimeDelta::minutes(1))
}

/// More than how long after it was accepted or sent again what is looked for ended. `can_have_ended` says whether all that is asked for may have.
pub(crate) fn late_by(seconds: Option<u32>, can_have_ended: bool) -> Result<Option<Duration>, Problem> {
    if seconds.is_some() && !can_have_ended {
        let detail = "is of what has ended: leave it out, or ask for SENT, FAILED or GIVEN_UP";
        return Err(Problem::query("lateBySeconds", detail).coded(FieldCode::Conflict));
    }
    Ok(seconds.map(|seconds| Duration::from_secs(u64::from(seconds))))
}

/// What is asked for needs an index that an upgrade is still making.
pub(crate) fn not_indexed() -> Problem {
    Problem::unavailable(
        "the index that finds this is still being made: retry-worker does it after an upgrade, within minutes",
        60,
    )
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_short_part_says_how_far_back_it_has_looked_and_a_full_one_or_the_last_does_not() {
        let at = DateTime::UNIX_EPOCH;
        let told = |items: Vec<u8>, goes_on: bool| {
            let next = goes_on.then_some((at, Uuid::nil()));
            let found = Examined {
                items,
                examined: 9,
                next,
            };
            Part::newest_first(found, 2, |item| item).looked_back_to
        };
        assert_eq!(told(vec![1], true), Some(at));
        assert_eq!(told(vec![1, 2], true), None);
        assert_eq!(told(vec![1], false), None);
    }
}

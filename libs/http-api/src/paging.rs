//! Lists in parts: how long a part is, and where the next one begins. A cursor is opaque to callers.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::field_code::FieldCode;
use crate::problem::{FieldProblem, Problem};

/// How many entries a part has when the caller does not say.
const DEFAULT_LIMIT: u32 = 50;
/// How many entries a part has at most.
const LIMIT_MAX: u32 = 200;

/// A part of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct List<T> {
    /// What is in it.
    pub items: Vec<T>,
    /// The `cursor` with which the list goes on; null when it has ended. A part that a filter has thinned out, even to
    /// nothing, may be followed by others.
    pub next: Option<String>,
}

impl<T> List<T> {
    /// A part, and the cursor of the following one.
    pub fn new(items: Vec<T>, next: Option<String>) -> Self {
        Self { items, next }
    }

    /// A part of a list by identifier, from what was asked for with a limit of one more than is shown.
    pub fn by_id<R>(mut rows: Vec<R>, limit: u32, id: impl Fn(&R) -> Uuid, show: impl Fn(R) -> T) -> Self {
        let limit = limit as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|row| write_id(id(row)));
        Self::new(rows.into_iter().map(show).collect(), next)
    }
}

/// How many entries to show.
pub fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    let limit = asked.unwrap_or(DEFAULT_LIMIT);
    if (1..=LIMIT_MAX).contains(&limit) {
        return Ok(limit);
    }
    Err(Problem::parameter(
        FieldProblem::new("limit", format!("must be between 1 and {LIMIT_MAX}")).between(1, LIMIT_MAX),
    ))
}

fn not_ours() -> Problem {
    Problem::query("cursor", "must be what an answer gave as next").coded(FieldCode::WrongFormat)
}

/// The cursor of a list by identifier that goes on after this one.
pub fn write_id(id: Uuid) -> String {
    id.simple().to_string()
}

/// Reads a cursor of a list by identifier.
pub fn read_id(cursor: Option<&str>) -> Result<Option<Uuid>, Problem> {
    cursor
        .map(|text| text.parse().map_err(|_| not_ours()))
        .transpose()
}

/// The cursor of a list by time that goes on after this entry.
pub fn write_at((at, id): (DateTime<Utc>, Uuid)) -> String {
    format!("{}-{}", at.timestamp_micros(), id.simple())
}

/// Reads a cursor of a list by time and, within one time, by identifier.
pub fn read_at(cursor: Option<&str>) -> Result<Option<(DateTime<Utc>, Uuid)>, Problem> {
    let read = |text: &str| {
        let (micros, id) = text.split_once('-')?;
        let at = DateTime::from_timestamp_micros(micros.parse().ok()?)?;
        Some((at, id.parse().ok()?))
    };
    cursor.map(|text| read(text).ok_or_else(not_ours)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_where_it_was_made() {
        let id = Uuid::from_u128(0x019a_a2f0_5b1c_7c3e_9d41_6f1f_2a3b_4c5d);
        assert_eq!(read_id(Some(&write_id(id))).unwrap(), Some(id));
        let due = (
            DateTime::from_timestamp_micros(1_795_000_000_123_456).unwrap(),
            id,
        );
        assert_eq!(read_at(Some(&write_at(due))).unwrap(), Some(due));
        for text in [
            "",
            "x",
            "1-",
            "-1",
            "1-x",
            "99999999999999999999-019aa2f05b1c7c3e9d416f1f2a3b4c5d",
        ] {
            assert!(
                read_id(Some(text)).is_err() && read_at(Some(text)).is_err(),
                "{text}"
            );
        }
        assert_eq!((read_id(None).unwrap(), read_at(None).unwrap()), (None, None));
    }

    #[test]
    fn a_part_has_at_least_one_and_at_most_two_hundred_entries() {
        assert_eq!(limit(None).unwrap(), 50);
        assert_eq!([limit(Some(1)).unwrap(), limit(Some(200)).unwrap()], [1, 200]);
        assert!(limit(Some(0)).is_err() && limit(Some(201)).is_err());
    }

    #[test]
    fn a_full_part_names_the_next_and_the_last_one_does_not() {
        let rows = |count: u128| (1..=count).map(Uuid::from_u128).collect::<Vec<_>>();
        let part = List::by_id(rows(3), 2, |id| *id, |id| id);
        assert_eq!(part.items.len(), 2);
        assert_eq!(part.next, Some(write_id(Uuid::from_u128(2))));
        assert_eq!(List::by_id(rows(2), 2, |id| *id, |id| id).next, None);
    }
}

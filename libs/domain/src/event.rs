//! What a caller says has happened, whether it can be accepted, and the bytes by which receivers are told.
//!
//! It deliberately knows no catalogue: whether an event type exists, and what its payloads look like, is asked elsewhere.

use chrono::{DateTime, Datelike as _, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::named;
use crate::reseller::{RESELLER_ID_FORM, is_reseller_id};
use crate::subscription::is_event_type;

/// What the names of event types of our own start with. No caller may use them.
const RESERVED: &str = "postrider.";
/// Longest event id of a caller.
const EVENT_ID_MAX: usize = 128;
/// How far in the future an event may have happened: clocks differ, but not by more than a day with its time zones.
const AHEAD: TimeDelta = TimeDelta::hours(24);

/// What becomes of a field of an event's data that the schema of its type does not list.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "UPPERCASE")]
#[serde(rename_all = "UPPERCASE")]
pub enum UnknownFields {
    /// The event is refused, and the field named.
    #[default]
    Refuse,
    /// It is taken out, and the rest passed on.
    Drop,
    /// It is passed on, unless the schema itself forbids it.
    Allow,
}

named!(UnknownFields, "way with unknown fields");

/// An event as it was handed in.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventDraft<'a> {
    /// Its type.
    pub event_type: Option<&'a str>,
    /// Whose event it is.
    pub reseller_id: Option<&'a str>,
    /// When it happened.
    pub occurred_at: Option<&'a str>,
    /// The caller's own name for it.
    pub event_id: Option<&'a str>,
    /// What happened: JSON, as it was written.
    pub data: Option<&'a str>,
}

/// An event that was found acceptable, as far as that can be told without a catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRequest<'a> {
    /// Its type.
    pub event_type: &'a str,
    /// Whose event it is.
    pub reseller_id: &'a str,
    /// When it happened, if the caller says so.
    pub occurred_at: Option<DateTime<Utc>>,
    /// The caller's own name for it.
    pub event_id: Option<&'a str>,
    /// A JSON object, as it was written.
    pub data: &'a str,
}

/// What is wrong with one field of an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The type is missing, or no name of a type.
    #[error("must be an event type such as domain.created")]
    Type,
    /// The type is one of our own.
    #[error("must not start with postrider., which is kept for events about the service itself")]
    Reserved,
    /// The reseller is missing, or no identifier.
    #[error("must be {RESELLER_ID_FORM}")]
    ResellerId,
    /// The caller's own name is none.
    #[error("must be 1 to {EVENT_ID_MAX} letters, digits, underscores, colons and hyphens")]
    EventId,
    /// The time is none.
    #[error("must be a time as RFC 3339 has it, such as 2026-11-21T12:00:00Z")]
    OccurredAt,
    /// The time is far in the future.
    #[error("must not be more than 24 hours in the future")]
    TooFarAhead,
    /// The data is missing, or no object.
    #[error("must be a JSON object")]
    Data,
    /// The data is too long.
    #[error("is {length} bytes long, but may be at most {limit}")]
    TooLong {
        /// Its length in bytes.
        length: usize,
        /// The greatest length in bytes.
        limit: usize,
    },
}

impl EventError {
    /// The name of the field on the wire.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Type | Self::Reserved => "type",
            Self::ResellerId => "resellerId",
            Self::EventId => "eventId",
            Self::OccurredAt | Self::TooFarAhead => "occurredAt",
            Self::Data | Self::TooLong { .. } => "data",
        }
    }
}

impl<'a> EventRequest<'a> {
    /// Checks everything that can be checked without a catalogue; the error lists every field that is wrong.
    /// `max_data_bytes` bounds the data, `now` is what "in the future" is measured by.
    pub fn check(
        draft: EventDraft<'a>,
        max_data_bytes: usize,
        now: DateTime<Utc>,
    ) -> Result<Self, Vec<EventError>> {
        let mut errors = Vec::new();
        let event_type = checked(&mut errors, check_type(draft.event_type));
        let reseller_id = checked(&mut errors, check_reseller(draft.reseller_id));
        let occurred_at = checked(&mut errors, check_time(draft.occurred_at, now));
        let event_id = checked(&mut errors, check_event_id(draft.event_id));
        let data = checked(&mut errors, check_data(draft.data, max_data_bytes));
        match (event_type, reseller_id, occurred_at, event_id, data) {
            (Some(event_type), Some(reseller_id), Some(occurred_at), Some(event_id), Some(data)) => {
                Ok(Self {
                    event_type,
                    reseller_id,
                    occurred_at,
                    event_id,
                    data,
                })
            }
            _ => Err(errors),
        }
    }

    /// What two requests with the same event id must have in common to be the same: type, time and data, as they were
    /// given.
    pub fn fingerprint(&self) -> [u8; 32] {
        let time = self.occurred_at.map(timestamp).unwrap_or_default();
        // None of the two contains a line end, so that no part of one can pass for a part of the next.
        let parts = [self.event_type, "\n", &time, "\n", self.data];
        let hash = parts
            .iter()
            .fold(Sha256::new(), |hash, part| hash.chain_update(part));
        hash.finalize().into()
    }
}

/// Whether a name is kept for event types of our own.
pub fn is_reserved(event_type: &str) -> bool {
    event_type.starts_with(RESERVED)
}

/// The body of every request that tells of an event, to the byte: `data` as its caller wrote it. `id` and `event_type` are
/// of characters that JSON needs no escapes for, as all identifiers and types are.
pub fn body(id: &str, event_type: &str, occurred_at: DateTime<Utc>, data: &str) -> String {
    let time = timestamp(occurred_at);
    format!(r#"{{"id":"{id}","type":"{event_type}","timestamp":"{time}","data":{data}}}"#)
}

fn timestamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn checked<T>(errors: &mut Vec<EventError>, result: Result<T, EventError>) -> Option<T> {
    result.map_err(|error| errors.push(error)).ok()
}

fn check_type(name: Option<&str>) -> Result<&str, EventError> {
    let name = name.filter(|name| is_event_type(name)).ok_or(EventError::Type)?;
    if is_reserved(name) {
        return Err(EventError::Reserved);
    }
    Ok(name)
}

fn check_reseller(id: Option<&str>) -> Result<&str, EventError> {
    id.filter(|id| is_reseller_id(id)).ok_or(EventError::ResellerId)
}

/// No dot: it separates the parts of what is signed.
fn check_event_id(id: Option<&str>) -> Result<Option<&str>, EventError> {
    let valid = |id: &str| {
        (1..=EVENT_ID_MAX).contains(&id.len())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_:-".contains(&byte))
    };
    match id {
        Some(id) if !valid(id) => Err(EventError::EventId),
        id => Ok(id),
    }
}

fn check_time(time: Option<&str>, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, EventError> {
    let Some(time) = time else { return Ok(None) };
    let at = DateTime::parse_from_rfc3339(time).map_err(|_| EventError::OccurredAt)?;
    let at = legible_everywhere(at.with_timezone(&Utc)).ok_or(EventError::OccurredAt)?;
    if at - now > AHEAD {
        return Err(EventError::TooFarAhead);
    }
    Ok(Some(at))
}

/// A time as every reader of RFC 3339 and PostgreSQL know it. A leap second is the first of the next minute there; and
/// what lies in the year 0 where it is written may lie before it in UTC, where no such text can say so.
fn legible_everywhere(at: DateTime<Utc>) -> Option<DateTime<Utc>> {
    const SECOND: u32 = 1_000_000_000;
    let nanos = at.timestamp_subsec_nanos();
    let at = DateTime::from_timestamp(at.timestamp() + i64::from(nanos / SECOND), nanos % SECOND)?;
    (0..=9999).contains(&at.year()).then_some(at)
}

fn check_data(data: Option<&str>, limit: usize) -> Result<&str, EventError> {
    let data = data
        .filter(|data| data.starts_with('{'))
        .ok_or(EventError::Data)?;
    if data.len() > limit {
        return Err(EventError::TooLong {
            length: data.len(),
            limit,
        });
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    const DRAFT: EventDraft<'_> = EventDraft {
        event_type: Some("domain.created"),
        reseller_id: Some("acme"),
        occurred_at: Some("2026-11-21T13:00:00.5+01:00"),
        event_id: Some("order-4711"),
        data: Some(r#"{"b": 1, "a": 2}"#),
    };

    fn now() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap()
    }

    fn check(draft: EventDraft<'_>) -> Result<EventRequest<'_>, Vec<EventError>> {
        EventRequest::check(draft, 20, now())
    }

    #[test]
    fn the_body_is_compact_but_for_the_data_which_stays_as_it_was_written() {
        let request = check(DRAFT).unwrap();
        assert_eq!(
            body(
                "e-1",
                request.event_type,
                request.occurred_at.unwrap(),
                request.data
            ),
            r#"{"id":"e-1","type":"domain.created","timestamp":"2026-11-21T12:00:00.500Z","data":{"b": 1, "a": 2}}"#
        );
    }

    #[test]
    fn every_field_that_is_wrong_is_listed() {
        let errors = check(EventDraft {
            event_id: Some("a.b"),
            occurred_at: Some("yesterday"),
            ..EventDraft::default()
        })
        .unwrap_err();
        let fields: Vec<_> = errors.iter().map(EventError::field).collect();
        assert_eq!(fields, ["type", "resellerId", "occurredAt", "eventId", "data"]);
    }

    #[test]
    fn names_of_our_own_are_reserved() {
        let event_type = Some("postrider.test");
        assert_eq!(
            check(EventDraft { event_type, ..DRAFT }),
            Err(vec![EventError::Reserved])
        );
    }

    #[test]
    fn a_day_ahead_is_accepted_and_a_millisecond_more_is_not() {
        let at = |time| {
            check(EventDraft {
                occurred_at: Some(time),
                ..DRAFT
            })
        };
        assert!(at("2026-11-22T12:00:00.000Z").is_ok());
        assert_eq!(at("2026-11-22T12:00:00.001Z"), Err(vec![EventError::TooFarAhead]));
    }

    #[test]
    fn a_leap_second_is_told_as_a_time_that_every_receiver_can_read() {
        let occurred_at = Some("2016-12-31T23:59:60.25Z");
        let request = check(EventDraft { occurred_at, ..DRAFT }).unwrap();
        let body = body("e-1", request.event_type, request.occurred_at.unwrap(), "{}");
        assert!(
            body.contains(r#""timestamp":"2017-01-01T00:00:00.250Z""#),
            "{body}"
        );
    }

    #[test]
    fn a_time_that_rfc_3339_cannot_tell_in_utc_is_refused() {
        let at = |time| {
            let occurred_at = Some(time);
            check(EventDraft { occurred_at, ..DRAFT }).map(|request| request.occurred_at)
        };
        assert_eq!(at("0000-01-01T00:59:59+01:00"), Err(vec![EventError::OccurredAt]));
        assert!(at("0000-01-01T01:00:00+01:00").is_ok());
    }

    #[test]
    fn identifiers_have_bounds_and_an_alphabet() {
        for (length, accepted) in [(0, false), (1, true), (128, true), (129, false)] {
            let id = "x".repeat(length);
            let event_id = Some(id.as_str());
            assert_eq!(
                check(EventDraft { event_id, ..DRAFT }).is_ok(),
                accepted,
                "{length}"
            );
        }
        let reseller_id = Some("a b");
        assert_eq!(
            check(EventDraft { reseller_id, ..DRAFT }),
            Err(vec![EventError::ResellerId])
        );
    }

    #[test]
    fn data_is_an_object_of_bounded_length() {
        let with = |data| {
            check(EventDraft {
                data: Some(data),
                ..DRAFT
            })
        };
        for data in ["[1]", "\"x\"", "null", "1"] {
            assert_eq!(with(data), Err(vec![EventError::Data]), "{data}");
        }
        assert!(with(r#"{"a":"12345678901"}"#).is_ok());
        assert!(matches!(
            with(r#"{"a":"1234567890123"}"#).unwrap_err()[..],
            [EventError::TooLong {
                length: 21,
                limit: 20
            }]
        ));
    }

    #[test]
    fn requests_are_the_same_when_type_time_and_data_are() {
        let of = |draft| check(draft).unwrap().fingerprint();
        assert_eq!(
            of(DRAFT),
            of(EventDraft {
                occurred_at: Some("2026-11-21T12:00:00.500Z"),
                ..DRAFT
            })
        );
        for other in [
            EventDraft {
                event_type: Some("domain.deleted"),
                ..DRAFT
            },
            EventDraft {
                occurred_at: None,
                ..DRAFT
            },
            EventDraft {
                data: Some("{}"),
                ..DRAFT
            },
        ] {
            assert_ne!(of(DRAFT), of(other));
        }
    }
}

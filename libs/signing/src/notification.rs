//! What the body of a notification says.
//!
//! Only the envelope is judged here: whether the data has the attributes that the catalogue lists for its event type is the
//! business of the program that uses them. Members that are not known are passed over, since more may be added.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::idempotency::idempotency_key;

/// One notification, read from a body whose signature was right.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// The event: the same in every attempt and every resend, and equal to the header `webhook-id`.
    pub id: String,
    /// The event type, such as `domain.created`.
    pub event_type: String,
    /// When the event happened. Notifications do not arrive in this order.
    pub timestamp: DateTime<Utc>,
    /// What happened.
    pub data: Map<String, Value>,
    /// SHA-256 over the body, in hexadecimal. Computed here: the header of this name is not signed.
    pub idempotency_key: String,
    /// When this attempt began, in seconds since 1970. Another one in each attempt.
    pub attempted_at: i64,
}

/// Why a body is no notification, although its signature is right. Says what is wrong without repeating any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is not one JSON value in UTF-8.
    #[error("the body is not JSON in UTF-8")]
    NotJson,
    /// It is a list, a text, a number, …
    #[error("the body is JSON, but no object")]
    NotAnObject,
    /// A member is missing, or is of another kind.
    #[error("the member {name} of the body is missing or is not {wanted}")]
    Member {
        /// Its name.
        name: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// The body belongs to another message than the headers say.
    #[error("the member id of the body is not what the header webhook-id says")]
    OtherId,
}

impl Notification {
    /// Reads a body that arrived with these headers; the caller has checked the signature.
    pub(crate) fn read(id: &str, attempted_at: i64, body: &[u8]) -> Result<Self, BodyError> {
        let value: Value = serde_json::from_slice(body).map_err(|_| BodyError::NotJson)?;
        let Value::Object(mut members) = value else {
            return Err(BodyError::NotAnObject);
        };
        let named = text(&mut members, "id")?;
        let event_type = text(&mut members, "type")?;
        let timestamp = time(&mut members)?;
        let data = data(&mut members)?;
        if named != id {
            return Err(BodyError::OtherId);
        }
        Ok(Self {
            id: named,
            event_type,
            timestamp,
            data,
            idempotency_key: idempotency_key(body),
            attempted_at,
        })
    }
}

fn text(members: &mut Map<String, Value>, name: &'static str) -> Result<String, BodyError> {
    match members.remove(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        _ => Err(BodyError::Member {
            name,
            wanted: "a text",
        }),
    }
}

fn time(members: &mut Map<String, Value>) -> Result<DateTime<Utc>, BodyError> {
    let wrong = BodyError::Member {
        name: "timestamp",
        wanted: "a time as RFC 3339 has it",
    };
    let text = text(members, "timestamp").map_err(|_| wrong)?;
    if !has_the_form_of_a_time(&text) {
        return Err(wrong);
    }
    let time = DateTime::parse_from_rfc3339(&text).map_err(|_| wrong)?;
    Ok(time.to_utc())
}

/// `2026-11-21T12:00:00.5+01:00`, with one to nine digits of a second or none, and `Z` for no offset. The parser takes more:
/// small letters, a blank for the `T`, and leap seconds, which other languages cannot represent.
fn has_the_form_of_a_time(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((date_and_time, rest)) = text.split_at_checked("2026-11-21T12:00:00".len()) else {
        return false;
    };
    let offset = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let fraction = &rest[..offset];
    let is_fraction = match fraction.strip_prefix('.') {
        Some(fraction) => (1..=9).contains(&fraction.len()) && digits(fraction),
        None => fraction.is_empty(),
    };
    is_fraction && date_and_time.as_bytes()[10] == b'T' && !date_and_time.ends_with("60")
}

fn data(members: &mut Map<String, Value>) -> Result<Map<String, Value>, BodyError> {
    match members.remove("data") {
        Some(Value::Object(data)) => Ok(data),
        _ => Err(BodyError::Member {
            name: "data",
            wanted: "an object",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(body: &str) -> Result<Notification, BodyError> {
        Notification::read("evt_1", 7, body.as_bytes())
    }

    fn at(timestamp: &str) -> Result<DateTime<Utc>, BodyError> {
        let body = format!(r#"{{"id":"evt_1","type":"a.b","timestamp":"{timestamp}","data":{{}}}}"#);
        read(&body).map(|notification| notification.timestamp)
    }

    #[test]
    fn what_is_wrong_with_a_body_is_said() {
        let name_of = |body| read(body).unwrap_err().to_string();
        assert_eq!(name_of("{"), "the body is not JSON in UTF-8");
        assert_eq!(name_of("[]"), "the body is JSON, but no object");
        for (body, part) in [
            (r#"{}"#, "id"),
            (r#"{"id":"evt_1"}"#, "type"),
            (r#"{"id":"evt_1","type":"a.b"}"#, "timestamp"),
            (
                r#"{"id":"evt_1","type":"a.b","timestamp":"2026-11-21T12:00:00Z"}"#,
                "data",
            ),
        ] {
            let wanted = format!("the member {part} of the body is missing");
            assert!(name_of(body).starts_with(&wanted), "{body}");
        }
    }

    #[test]
    fn times_have_the_form_that_every_language_reads() {
        for timestamp in [
            "2026-11-21T12:00:00Z",
            "2026-11-21T12:00:00.000000000Z",
            "2026-11-21T13:30:00+01:30",
        ] {
            assert_eq!(at(timestamp).unwrap().timestamp(), 1_795_262_400, "{timestamp}");
        }
        for timestamp in [
            "2026-11-21T12:00:60Z",
            "2026-11-21t12:00:00z",
            "2026-11-21 12:00:00Z",
            "2026-11-21T12:00:00",
            "2026-11-21T12:00:00,5Z",
            "2026-11-21T12:00:00.Z",
            "2026-11-21T12:00:00.0000000000Z",
            "2026-11-21T12:00Z",
            "2026-11-2\u{e4}T12:00:00Z",
            "1795262400",
        ] {
            assert!(at(timestamp).is_err(), "{timestamp}");
        }
    }

    proptest! {
        #[test]
        fn no_time_makes_it_panic(text in "[0-9T:.Z+ -]{0,40}|\\PC{0,40}") {
            let _ = at(&text.replace(['"', '\\'], ""));
        }
    }
}

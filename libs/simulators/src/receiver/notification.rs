//! What the body of a request says, as far as the receiver needs to know.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Deserialize;

/// The event type of a verification challenge.
pub(crate) const CHALLENGE: &str = "postrider.verification";

/// The readable part of a body. Empty for a body that is no notification; that alone is no reason to refuse it.
#[derive(Debug, Default)]
pub(crate) struct Notification<'a> {
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) event_type: Option<Cow<'a, str>>,
    pub(crate) timestamp: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "type")]
    event_type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    timestamp: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct WithChallenge {
    data: Challenge,
}

#[derive(Deserialize)]
struct Challenge {
    challenge: String,
}

impl<'a> Notification<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Self {
        let Ok(head) = serde_json::from_slice::<Head<'a>>(body) else {
            return Self::default();
        };
        let timestamp = head.timestamp.as_deref();
        Self {
            timestamp: timestamp.and_then(|text| text.parse().ok()),
            id: head.id,
            event_type: head.event_type,
        }
    }

    pub(crate) fn is_challenge(&self) -> bool {
        self.event_type.as_deref() == Some(CHALLENGE)
    }
}

/// The challenge that a body of that type holds.
pub(crate) fn challenge(body: &[u8]) -> Option<String> {
    let read: WithChallenge = serde_json::from_slice(body).ok()?;
    Some(read.data.challenge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_is_read_and_anything_else_is_empty() {
        let read = Notification::read(
            br#"{"id":"a\"b","type":"domain.created","timestamp":"2025-07-20T08:26:40.250Z","data":[1,{}]}"#,
        );
        assert_eq!(read.id.as_deref(), Some("a\"b"));
        assert_eq!(read.event_type.as_deref(), Some("domain.created"));
        assert_eq!(read.timestamp.unwrap().timestamp_millis(), 1_753_000_000_250);
        for body in ["", "[]", "null", r#"{"id":5}"#, r#"{"id":"a""#] {
            assert!(Notification::read(body.as_bytes()).id.is_none(), "{body}");
        }
        let without_time = Notification::read(br#"{"id":"a","timestamp":"yesterday"}"#);
        assert!(without_time.id.is_some() && without_time.timestamp.is_none());
    }

    #[test]
    fn a_challenge_is_found_in_its_data() {
        let body = br#"{"id":"1","type":"postrider.verification","data":{"challenge":"x-1"}}"#;
        assert!(Notification::read(body).is_challenge());
        assert_eq!(challenge(body).as_deref(), Some("x-1"));
        assert_eq!(challenge(br#"{"data":{}}"#), None);
    }
}

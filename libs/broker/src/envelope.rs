//! The message that travels through the queues, and its wire format.
//!
//! Messages are thin: they name a row, they do not carry it. The payload is read from the database when the
//! row is claimed, so a message can be lost, repeated or outdated without harm.
//!
//! # Wire format
//!
//! The body is a JSON object in UTF-8 of at most [`MAX_BYTES`] bytes:
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `version` | integer | [`VERSION`]; a reader rejects any other |
//! | `kind` | string | what `id` names: `push` or `notification` |
//! | `id` | string | UUID of the row, hyphenated; never the nil UUID |
//! | `enqueued_at` | string | RFC 3339, UTC; when the row was handed to the broker |
//! | `group` | string, optional | UUID shared by messages that must not crowd out others: a notification's subscription |
//! | `traceparent` | string, optional | W3C trace context of the process that handed it over |
//! | `more` | array, optional | further rows of the same kind that were handed over together: `[id, group, traceparent]` each, the last two as above or `null` |
//!
//! A server's work is for messages, not for rows: what is committed together travels together, as many rows as fit into
//! a body. They share the message's fate: it is confirmed or refused for all of them, comes again with all of them, and is
//! acknowledged when none of them needs it any longer.
//!
//! The same facts are repeated as AMQP properties for people and tools that look at queues, and are never
//! read back: `content_type` is `application/json`, `message_id` is `id`, `type` is `kind`, `timestamp` is
//! `enqueued_at` in seconds, `delivery_mode` is 2 (persistent), and the header `traceparent` is set if there
//! is one.
//!
//! `correlation_id` is a number by which the publishing channel recognises returned messages; it means nothing
//! to anyone else.
//!
//! # Compatibility
//!
//! A reader ignores fields that it does not know, so a field may be added within a version. What an old
//! reader would misunderstand needs a new version. The version is read before anything else, so that a
//! message from a newer sender is reported as such and not as malformed. A `traceparent` that is not valid is
//! dropped, as its specification asks: a broken trace must not cost the push. `group` lets a consumer be fair
//! before it has read a row; it is a hint, and the row decides.
//!
//! A reader that does not know `more` handles the first row and leaves the others to their leases, which costs them a
//! minute. So `more` is written only where every reader has said that it knows it, see [`crate::Broker::share_messages`].

use std::ops::Range;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::traceparent::is_traceparent;

mod error;
mod kind;

pub use error::EnvelopeError;
pub use kind::Kind;

/// The version that this crate writes and reads.
pub const VERSION: u16 = 1;
/// Longest body that is read.
pub const MAX_BYTES: usize = 4096;
/// Most rows that one message names: so many fit into [`MAX_BYTES`] when none of them has a trace; with traces 28 do.
pub const TOGETHER_MAX: usize = 1 + (MAX_BYTES - FIRST_BYTES) / FURTHER_BYTES;
/// What a body with one row takes at most, without a trace.
const FIRST_BYTES: usize = 184;
/// What a further row takes of a body at most, without a trace, whose quotes take no more than `null` does.
const FURTHER_BYTES: usize = 85;
/// The field of the first row's trace, without the trace.
const TRACE_FIELD_BYTES: usize = r#""traceparent":"","#.len();

/// What a message says of a row: its name, and when and by which trace it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Id of the row.
    pub id: Uuid,
    /// What kind of row.
    pub kind: Kind,
    /// Version of the wire format.
    pub version: u16,
    /// When the row was handed to the broker.
    pub enqueued_at: DateTime<Utc>,
    /// What it shares with other messages that must not crowd out the rest: of a notification, the id of its
    /// subscription.
    pub group: Option<Uuid>,
    /// W3C trace context of the process that handed it over.
    pub traceparent: Option<String>,
}

#[derive(Deserialize)]
struct VersionOnly {
    version: u64,
}

#[derive(Serialize, Deserialize)]
struct Body {
    version: u16,
    kind: String,
    id: Uuid,
    enqueued_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    more: Vec<Further>,
}

/// A further row of a message: its id, its group, and its trace.
#[derive(Serialize, Deserialize)]
struct Further(Uuid, Option<Uuid>, Option<String>);

impl Envelope {
    /// An envelope of the current version for the push `id`. A `traceparent` that is not valid is dropped.
    pub fn push(id: Uuid, enqueued_at: DateTime<Utc>, traceparent: Option<String>) -> Self {
        Self::new(Kind::Push, id, None, enqueued_at, traceparent)
    }

    /// An envelope of the current version for the notification `id`, whose subscription is `group`. A
    /// `traceparent` that is not valid is dropped.
    pub fn notification(
        id: Uuid,
        group: Uuid,
        enqueued_at: DateTime<Utc>,
        traceparent: Option<String>,
    ) -> Self {
        Self::new(Kind::Notification, id, Some(group), enqueued_at, traceparent)
    }

    fn new(
        kind: Kind,
        id: Uuid,
        group: Option<Uuid>,
        enqueued_at: DateTime<Utc>,
        traceparent: Option<String>,
    ) -> Self {
        Self {
            id,
            kind,
            version: VERSION,
            enqueued_at,
            group,
            traceparent: traceparent.filter(|value| is_traceparent(value)),
        }
    }

    /// The body on the wire of a message about this row alone.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_with(&[])
    }

    /// The body on the wire of a message about this row and `others` of the same kind.
    pub(crate) fn encode_with(&self, others: &[Self]) -> Vec<u8> {
        let trace = |envelope: &Self| envelope.valid_traceparent().map(str::to_owned);
        let further = |other: &Self| Further(other.id, other.group, trace(other));
        let body = Body {
            version: self.version,
            kind: self.kind.as_str().to_owned(),
            id: self.id,
            enqueued_at: self.enqueued_at,
            group: self.group,
            traceparent: trace(self),
            more: others.iter().map(further).collect(),
        };
        serde_json::to_vec(&body).expect("invariant: a struct of strings and numbers is always valid JSON")
    }

    /// Reads a body from the wire: what it says of each of its rows, of which there is at least one.
    ///
    /// # Errors
    ///
    /// Every [`EnvelopeError`] is permanent: the same body will never be readable by this version.
    pub fn decode(body: &[u8]) -> Result<Vec<Self>, EnvelopeError> {
        if body.len() > MAX_BYTES {
            return Err(EnvelopeError::TooLong { bytes: body.len() });
        }
        let malformed = |source| EnvelopeError::Malformed { source };
        let VersionOnly { version: found } = serde_json::from_slice(body).map_err(malformed)?;
        if found != u64::from(VERSION) {
            return Err(EnvelopeError::UnsupportedVersion { found });
        }
        let body: Body = serde_json::from_slice(body).map_err(malformed)?;
        let Some(kind) = Kind::parse(&body.kind) else {
            return Err(EnvelopeError::UnknownKind { found: body.kind });
        };
        let first = Further(body.id, body.group, body.traceparent);
        let rows = std::iter::once(first).chain(body.more);
        rows.map(|Further(id, group, traceparent)| {
            if id.is_nil() {
                return Err(EnvelopeError::NilId);
            }
            Ok(Self {
                id,
                kind,
                version: body.version,
                enqueued_at: body.enqueued_at,
                group,
                traceparent: traceparent.filter(|value| is_traceparent(value)),
            })
        })
        .collect()
    }

    pub(crate) fn valid_traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref().filter(|value| is_traceparent(value))
    }

    /// What it takes at most of a body that it begins.
    fn first_bytes(&self) -> usize {
        let trace = self.traceparent.as_deref();
        FIRST_BYTES + trace.map_or(0, |trace| TRACE_FIELD_BYTES + trace.len())
    }

    /// What it takes at most of a body that another row began.
    fn further_bytes(&self) -> usize {
        FURTHER_BYTES + self.traceparent.as_deref().map_or(0, str::len)
    }
}

/// The places of what goes into each message when these, all of the same kind, share messages: as many as fit, in their order.
pub(crate) fn together(envelopes: &[Envelope]) -> Vec<Range<usize>> {
    let mut messages: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (place, envelope) in envelopes.iter().enumerate() {
        let further = envelope.further_bytes();
        match messages.last_mut() {
            Some(message) if bytes + further <= MAX_BYTES => {
                message.end += 1;
                bytes += further;
            }
            _ => {
                messages.push(place..place + 1);
                bytes = envelope.first_bytes();
            }
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn envelope() -> Envelope {
        let at = DateTime::from_timestamp(1_700_000_000, 123_456_000).expect("in range");
        Envelope::push(Uuid::from_u128(7), at, Some(TRACE.to_owned()))
    }

    fn body(change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
        let mut value = serde_json::from_slice(&envelope().encode()).expect("JSON");
        change(&mut value);
        value.to_string().into_bytes()
    }

    #[test]
    fn wire_format_is_stable() {
        assert_eq!(
            String::from_utf8(envelope().encode()).expect("UTF-8"),
            r#"{"version":1,"kind":"push","id":"00000000-0000-0000-0000-000000000007","#.to_owned()
                + r#""enqueued_at":"2023-11-14T22:13:20.123456Z","#
                + &format!(r#""traceparent":"{TRACE}"}}"#)
        );
    }

    #[test]
    fn wire_format_of_a_notification_names_its_subscription() {
        let at = DateTime::from_timestamp(1_700_000_000, 0).expect("in range");
        let envelope = Envelope::notification(Uuid::from_u128(7), Uuid::from_u128(8), at, None);
        assert_eq!(
            String::from_utf8(envelope.encode()).expect("UTF-8"),
            r#"{"version":1,"kind":"notification","id":"00000000-0000-0000-0000-000000000007","#.to_owned()
                + r#""enqueued_at":"2023-11-14T22:13:20Z","group":"00000000-0000-0000-0000-000000000008"}"#
        );
    }

    #[test]
    fn encoded_envelope_decodes_to_itself() {
        let without_trace = Envelope {
            traceparent: None,
            ..envelope()
        };
        let trace = Some(TRACE.to_owned());
        let notification = Envelope::notification(
            Uuid::from_u128(7),
            Uuid::from_u128(8),
            envelope().enqueued_at,
            trace,
        );
        for envelope in [envelope(), without_trace, notification] {
            assert_eq!(Envelope::decode(&envelope.encode()).expect("valid"), [envelope]);
        }
    }

    #[test]
    fn wire_format_of_several_rows_is_stable_and_fits() {
        let at = DateTime::from_timestamp(1_700_000_000, 0).expect("in range");
        let one = |id, trace: Option<&str>| {
            let (id, group) = (Uuid::from_u128(id), Uuid::from_u128(8));
            Envelope::notification(id, group, at, trace.map(str::to_owned))
        };
        let rows = [one(7, None), one(9, None), one(10, Some(TRACE))];
        let body = rows[0].encode_with(&rows[1..]);
        assert_eq!(Envelope::decode(&body).expect("valid"), rows);
        let group = r#""00000000-0000-0000-0000-000000000008""#;
        assert_eq!(
            String::from_utf8(body).expect("UTF-8"),
            r#"{"version":1,"kind":"notification","id":"00000000-0000-0000-0000-000000000007","#.to_owned()
                + &format!(r#""enqueued_at":"2023-11-14T22:13:20Z","group":{group},"more":["#)
                + &format!(r#"["00000000-0000-0000-0000-000000000009",{group},null],"#)
                + &format!(r#"["00000000-0000-0000-0000-00000000000a",{group},"{TRACE}"]]}}"#)
        );
    }

    #[test]
    fn as_many_rows_share_a_message_as_fit_with_their_traces() {
        // With as many digits as a time has.
        let at = DateTime::from_timestamp(1_700_000_000, 123_456_789).expect("in range");
        let id = Uuid::from_u128(u128::MAX);
        let one = |trace: Option<&str>| Envelope::notification(id, id, at, trace.map(str::to_owned));
        let (plain, traced) = (one(None), one(Some(TRACE)));
        let long = one(Some(&format!(
            "{}-{}",
            TRACE.replacen("00", "01", 1),
            "x".repeat(72)
        )));
        assert!(long.traceparent.is_some(), "the longest that is passed on");
        let three = [plain.clone(), traced.clone(), long.clone()];
        let mixed = three.iter().cycle().take(180).cloned().collect();
        for (all, first) in [
            (vec![plain; 100], TOGETHER_MAX),
            (vec![traced; 100], 28),
            (vec![long; 100], 18),
            (mixed, 27),
        ] {
            let messages = together(&all);
            assert_eq!(messages.first(), Some(&(0..first)));
            assert!(
                messages.iter().cloned().flatten().eq(0..all.len()),
                "each goes once"
            );
            for message in messages {
                let rows = &all[message];
                let body = rows[0].encode_with(&rows[1..]);
                assert_eq!(Envelope::decode(&body).expect("it fits"), rows);
            }
        }
        assert!(together(&[]).is_empty());
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let body = body(|value| value["added_later"] = serde_json::json!({"a": [1]}));
        assert_eq!(Envelope::decode(&body).expect("valid"), [envelope()]);
    }

    #[test]
    fn another_version_is_reported_as_such_whatever_else_it_says() {
        for found in [0, 2, 70_000] {
            let body = format!(r#"{{"version":{found},"entirely":"different"}}"#);
            let error = Envelope::decode(body.as_bytes()).expect_err("other version");
            assert!(matches!(error, EnvelopeError::UnsupportedVersion { found: said } if said == found));
        }
    }

    #[test]
    fn unknown_kind_is_rejected() {
        let error = Envelope::decode(&body(|value| value["kind"] = "telegram".into())).expect_err("kind");
        assert!(matches!(error, EnvelopeError::UnknownKind { found } if found == "telegram"));
    }

    #[test]
    fn bodies_that_are_no_envelope_are_rejected() {
        for bad in [
            &b""[..],
            b"\xff\xfe",
            b"null",
            b"[]",
            b"{}",
            b"{\"version\":1}",
            b"{\"version\":\"1\"}",
        ] {
            let error = Envelope::decode(bad).expect_err("malformed");
            assert!(
                matches!(error, EnvelopeError::Malformed { .. }),
                "{bad:?}: {error}"
            );
        }
        let error = Envelope::decode(&body(|value| value["id"] = "no uuid".into())).expect_err("id");
        assert!(matches!(error, EnvelopeError::Malformed { .. }));
        let error =
            Envelope::decode(&body(|value| value["id"] = Uuid::nil().to_string().into())).expect_err("nil");
        assert!(matches!(error, EnvelopeError::NilId));
        let nil = serde_json::json!([[Uuid::nil(), null, null]]);
        let error = Envelope::decode(&body(|value| value["more"] = nil)).expect_err("nil");
        assert!(matches!(error, EnvelopeError::NilId));
        let error = Envelope::decode(&body(|value| value["more"] = "none".into())).expect_err("more");
        assert!(matches!(error, EnvelopeError::Malformed { .. }));
        let error = Envelope::decode(&vec![b' '; MAX_BYTES + 1]).expect_err("long");
        assert!(matches!(error, EnvelopeError::TooLong { .. }));
    }

    #[test]
    fn invalid_traceparent_is_dropped_and_the_rest_kept() {
        let decoded = Envelope::decode(&body(|value| value["traceparent"] = "x".into())).expect("valid");
        assert_eq!(
            decoded,
            [Envelope {
                traceparent: None,
                ..envelope()
            }]
        );
    }
}

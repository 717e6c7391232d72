//! The bodies of `POST /events` and `POST /events/batch`: what is accepted becomes a body that every JSON reader and
//! every reader of RFC 3339 understands, holds the data to the byte, and is the same alone and in a batch.

use chrono::{DateTime, Timelike as _};
use domain::event::EventRequest;
use http_api::Problem;
use serde_json::Value;
use serde_json::value::RawValue;
use store::webhook::NewEvent;

use crate::given::{can_be_stored, is_explained, now};
use crate::raw_object::RawObject;

const MAX_DATA_BYTES: usize = 2_048;
const BATCH_MAX: usize = 3;
const MEMBERS: [&str; 5] = ["type", "resellerId", "data", "occurredAt", "eventId"];

/// Checks the property.
pub fn check(body: &[u8]) {
    let single = ingest_api::fuzzing::single(body, MAX_DATA_BYTES, now());
    match &single {
        Ok(event) => is_sound(body, event),
        Err(problem) => is_explained(problem),
    }
    let list = [br#"{"events":["#, body, b"]}"].concat();
    if serde_json::from_slice::<&RawValue>(body).is_ok() {
        match (&single, batch(&list)) {
            (Ok(event), Ok(events)) => assert!(matches!(&events[..], [other] if same(other, event))),
            (single, batch) => assert_eq!(single.is_ok(), batch.is_ok(), "the same alone and in a batch"),
        }
    }
    match batch(body) {
        Ok(events) => assert!((1..=BATCH_MAX).contains(&events.len())),
        Err(problem) => is_explained(&problem),
    }
}

fn batch(body: &[u8]) -> Result<Vec<NewEvent>, Problem> {
    ingest_api::fuzzing::batch(body, BATCH_MAX, MAX_DATA_BYTES, now())
}

/// The same but for the identifier that is drawn each time, which is also its name when the caller gave none.
fn same(one: &NewEvent, other: &NewEvent) -> bool {
    let neutral = |event: &NewEvent| event.body.replace(&event.id.to_string(), "");
    neutral(one) == neutral(other)
        && (&one.event_type, one.occurred_at) == (&other.event_type, other.occurred_at)
}

fn is_sound(body: &[u8], event: &NewEvent) {
    let object = RawObject::read(body).expect("only an object is accepted");
    assert!(object.is_made_of(&MEMBERS));
    let data = object.raw("data").expect("only with data");
    assert!(data.len() <= MAX_DATA_BYTES);
    let told: Value = serde_json::from_str(&event.body).expect("the body is JSON");
    let head = event.body.strip_suffix(&format!(r#","data":{data}}}"#));
    assert!(
        head.is_some(),
        "the data is passed on to the byte: {}",
        event.body
    );
    assert_eq!(told["id"], event.event_id.as_str());
    assert_eq!(told["type"], event.event_type.as_str());
    assert_eq!(told.as_object().map(serde_json::Map::len), Some(4));
    is_timestamp(told["timestamp"].as_str().expect("a text"), event);
    for text in [
        &event.event_id,
        &event.reseller_id,
        &event.event_type,
        &event.body,
    ] {
        assert!(!text.contains('\0'), "it cannot be stored");
    }
    assert!(
        !event.event_id.contains('.'),
        "it would be ambiguous what is signed"
    );
    is_repeatable(&object, event);
}

/// `2026-11-21T12:00:00.500Z` and nothing else, which is a form that every language reads.
fn is_timestamp(text: &str, event: &NewEvent) {
    let form = "dddd-dd-ddTdd:dd:dd.dddZ";
    let fits = text.len() == form.len()
        && text.bytes().zip(form.bytes()).all(|(byte, form)| match form {
            b'd' => byte.is_ascii_digit(),
            other => byte == other,
        });
    assert!(fits, "{text}");
    assert!(
        &text[17..19] < "60",
        "leap seconds are not read everywhere: {text}"
    );
    assert!(can_be_stored(event.occurred_at), "{}", event.occurred_at);
    assert!(
        event.occurred_at.nanosecond() < 1_000_000_000,
        "PostgreSQL has no leap seconds"
    );
    let read = DateTime::parse_from_rfc3339(text).expect("RFC 3339");
    assert_eq!(read.timestamp_millis(), event.occurred_at.timestamp_millis());
    assert!(event.occurred_at <= now() + chrono::TimeDelta::hours(24));
}

/// The request that is repeated later, when time has gone on, is still the same request.
fn is_repeatable(object: &RawObject<'_>, event: &NewEvent) {
    let of = |data| EventRequest {
        event_type: &event.event_type,
        reseller_id: &event.reseller_id,
        occurred_at: Some(event.occurred_at),
        event_id: None,
        data,
    };
    let data = object.raw("data").expect("only with data");
    assert_eq!(of(data).fingerprint(), of(data).fingerprint());
    let longer = format!("{data} ");
    assert_ne!(of(data).fingerprint(), of(&longer).fingerprint());
}

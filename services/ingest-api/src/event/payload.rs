//! The body of `POST /events`.
//!
//! It deliberately judges no value: that is `domain`'s part, and the catalogue's.

use std::borrow::Cow;

use domain::event::EventDraft;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// An event to tell a reseller of.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schema(as = EventRequest)]
pub(crate) struct EventPayload<'a> {
    /// An event type of the catalogue.
    #[serde(rename = "type", borrow, default)]
    #[schema(value_type = String, required = true, example = "domain.created")]
    event_type: Option<Cow<'a, str>>,
    /// Whose event it is: 1 to 64 letters, digits, dots, underscores, colons and hyphens.
    #[serde(borrow, default)]
    #[schema(value_type = String, required = true, min_length = 1, max_length = 64, example = "acme")]
    reseller_id: Option<Cow<'a, str>>,
    /// What happened. Passed on as it is written here, at most reseller.event.maxDataBytes long, and as the event type's
    /// schema wants it, if it has one.
    #[serde(borrow, default)]
    #[schema(value_type = Object, required = true)]
    data: Option<&'a RawValue>,
    /// When it happened, as RFC 3339 has it; the time of the request when absent or null. At most 24 hours in the future.
    #[serde(borrow, default)]
    #[schema(value_type = Option<DateTime<Utc>>, example = "2026-11-21T12:00:00Z")]
    occurred_at: Option<Cow<'a, str>>,
    /// The caller's own name for the event, by which receivers know it as well: 1 to 128 letters, digits, underscores,
    /// colons and hyphens. An event of the same reseller with the same name, type, time and data is the same event.
    #[serde(borrow, default)]
    #[schema(min_length = 1, max_length = 128, example = "order-4711-created")]
    event_id: Option<Cow<'a, str>>,
}

impl EventPayload<'_> {
    /// The same, to be checked.
    pub(crate) fn draft(&self) -> EventDraft<'_> {
        EventDraft {
            event_type: self.event_type.as_deref(),
            reseller_id: self.reseller_id.as_deref(),
            occurred_at: self.occurred_at.as_deref(),
            event_id: self.event_id.as_deref(),
            data: self.data.map(RawValue::get),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_api::Handling;

    use super::*;

    fn read(body: &str) -> Result<EventPayload<'_>, serde_json::Value> {
        let read = http_api::read_json(body.as_bytes(), Handling::Strict);
        let whole = read.and_then(|(payload, wrong)| wrong.merge(Ok(payload)));
        whole.map_err(|problem| problem.example())
    }

    #[test]
    fn data_is_taken_as_it_is_written() {
        let payload = read(r#"{"type":"a.b","data": { "z" : 1.10, "a":"\u00e4" } }"#).unwrap();
        assert_eq!(payload.draft().data, Some(r#"{ "z" : 1.10, "a":"\u00e4" }"#));
        assert_eq!(read(r#"{"data": null}"#).unwrap().draft().data, None);
    }

    #[test]
    fn a_field_of_the_wrong_type_is_named_also_after_the_data() {
        let problem = read("{\"data\": {\"a\": [1, {}]},\n \"eventId\": 5}").unwrap_err();
        let error = &problem["errors"][0];
        assert_eq!(
            (&error["field"], error["line"].as_u64()),
            (&"eventId".into(), Some(2))
        );
    }

    #[test]
    fn broken_data_is_a_broken_body() {
        let problem = read(r#"{"data": {"a": tru}}"#).unwrap_err();
        assert_eq!(problem["type"], "urn:postrider:problem:malformed-body");
    }
}

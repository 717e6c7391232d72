//! Events, as callers of `POST /events` hand them in.

use reqwest::{RequestBuilder, header};

use super::callers::Submission;

/// Who has subscriptions, and whose events come.
pub(crate) const RESELLERS: [&str; 2] = ["acme", "globex"];
/// Types of the catalogue whose payloads hold one name.
const TYPES: [&str; 3] = ["domain.unsuspended", "contact.deleted", "host.deleted"];
/// When all of them happened, which makes the bytes that are to arrive known beforehand.
const OCCURRED_AT: &str = "2026-01-31T23:59:59.250Z";

/// An event to hand in. No other has the same id.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) event_type: &'static str,
    pub(crate) reseller: &'static str,
}

/// Events `{group}-0`, `{group}-1` and so on, of every type for every reseller in turns.
pub(crate) fn events(group: &str, count: usize) -> Vec<Event> {
    (0..count)
        .map(|number| Event {
            id: format!("{group}-{number}"),
            event_type: TYPES[number % TYPES.len()],
            reseller: RESELLERS[number % RESELLERS.len()],
        })
        .collect()
}

/// [`events`] of one reseller alone.
pub(crate) fn events_of(reseller: &'static str, group: &str, count: usize) -> Vec<Event> {
    let own = |event| Event { reseller, ..event };
    events(group, count).into_iter().map(own).collect()
}

impl Event {
    /// As no serialiser would write it.
    fn data(&self) -> String {
        let Self { id, event_type, .. } = self;
        match event_type.split('.').next() {
            Some("host") => format!(r#"{{ "host":{{"name":"ns1.{id}.example"}}}}"#),
            Some("domain") => format!(r#"{{"domain": {{"name":"{id}.example" }} }}"#),
            _ => format!(r#"{{ "contact" :{{"id" :"{id}"}}}}"#),
        }
    }

    /// The bytes that are to arrive.
    pub(crate) fn body(&self) -> String {
        let Self { id, event_type, .. } = self;
        let data = self.data();
        format!(r#"{{"id":"{id}","type":"{event_type}","timestamp":"{OCCURRED_AT}","data":{data}}}"#)
    }
}

impl Submission for Event {
    const PATH: &'static str = "/events";

    fn key(&self) -> &str {
        &self.id
    }

    fn fill(&self, request: RequestBuilder) -> RequestBuilder {
        let Self {
            id,
            event_type,
            reseller,
        } = self;
        let data = self.data();
        let body = format!(
            r#"{{"eventId":"{id}","type":"{event_type}","resellerId":"{reseller}","occurredAt":"{OCCURRED_AT}","data":{data}}}"#
        );
        request
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)
    }
}

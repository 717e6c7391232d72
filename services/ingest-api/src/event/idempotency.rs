//! The keys by which a repeated event is known: the caller's own event id, and the request's `Idempotency-Key`.

use chrono::{DateTime, Utc};
use domain::event::EventRequest;
use http::StatusCode;
use http_api::ProblemKind;
use store::push::IdempotencyKey;
use store::webhook::EventKey;

use crate::event::payload::EventPayload;
use crate::request::RequestContext;

/// The event id belongs to another event.
pub(crate) const EVENT_ID_REUSED: ProblemKind = ProblemKind::new(
    "event-id-reused",
    StatusCode::UNPROCESSABLE_ENTITY,
    "The event id belongs to another event",
    "The eventId was used before for an event of the same reseller with another type, time or data.",
);

/// What the request's `Idempotency-Key` is for the event at a place of the request.
fn of_request(key: &IdempotencyKey, place: usize) -> EventKey {
    EventKey {
        scope: format!("key/{}/{place}", key.owner),
        key: key.key.clone(),
        request: key.request,
    }
}

/// Every key of an event: its own first, so that a place in the list tells which of the two it is.
pub(crate) fn keys(request: &EventRequest<'_>, key: Option<&IdempotencyKey>, place: usize) -> Vec<EventKey> {
    let own = request.event_id.map(|id| EventKey {
        scope: format!("reseller/{}", request.reseller_id),
        key: id.to_owned(),
        request: request.fingerprint(),
    });
    own.into_iter()
        .chain(key.map(|key| of_request(key, place)))
        .collect()
}

/// What is wrong when the key at `place` of [`keys`] belongs to another request.
pub(crate) fn reused(keys: &[EventKey], place: usize) -> ProblemKind {
    match keys.get(place) {
        Some(key) if key.scope.starts_with("reseller/") => EVENT_ID_REUSED,
        _ => ProblemKind::IDEMPOTENCY_KEY_REUSED,
    }
}

/// The keys by which an earlier request with this payload would be known, although it cannot be accepted now. An eventId is one of the reseller's,
/// whichever API key it came with: it says nothing to a caller that may not hand in such an event.
pub(crate) fn remembered(
    payload: &EventPayload<'_>,
    context: &RequestContext,
    place: usize,
) -> Vec<EventKey> {
    let draft = payload.draft();
    let time = draft.occurred_at.map(DateTime::parse_from_rfc3339);
    let own = match (
        draft.event_type,
        draft.reseller_id,
        draft.data,
        draft.event_id,
        time,
    ) {
        (Some(event_type), Some(reseller_id), Some(data), Some(event_id), None | Some(Ok(_)))
            if context.scope.refuses_event(reseller_id, event_type).is_none() =>
        {
            let request = EventRequest {
                event_type,
                reseller_id,
                occurred_at: time.and_then(Result::ok).map(|time| time.with_timezone(&Utc)),
                event_id: Some(event_id),
                data,
            };
            keys(&request, None, place)
        }
        _ => Vec::new(),
    };
    own.into_iter()
        .chain(context.key.as_ref().map(|key| of_request(key, place)))
        .collect()
}

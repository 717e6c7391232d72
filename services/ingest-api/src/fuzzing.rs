//! Doors to what is private here, for the properties of `testing/fuzz/properties`. They add nothing of their own.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use domain::event::EventRequest;
use domain::push::{Limits, PushRequest};
use domain::scope::Scope;
use http_api::{FieldProblem, Handling, Problem, Wrong};
use store::webhook::NewEvent;
use tokio::time::Instant;

use crate::event::batch::{BatchPayload, counted};
use crate::event::payload::EventPayload;
use crate::event::validate::{against_the_rules, event, field};
use crate::request::RequestContext;

/// The push that the body of `POST /push` hands in.
pub fn push(body: &[u8], limits: &Limits, at: (DateTime<Utc>, Tz)) -> Result<PushRequest, Problem> {
    crate::push::submit::read(body, Handling::Strict, limits, &Scope::default(), at)
}

/// The event that the body of `POST /events` hands in, when the catalogue has its type.
pub fn single(body: &[u8], max_data_bytes: usize, now: DateTime<Utc>) -> Result<NewEvent, Problem> {
    let (payload, wrong): (EventPayload<'_>, Wrong) = http_api::read_json(body, Handling::Strict)?;
    wrong.merge(checked(&payload, 0, max_data_bytes, now).map_err(Problem::fields))
}

/// The events that the body of `POST /events/batch` hands in, when the catalogue has all of their types.
pub fn batch(
    body: &[u8],
    max: usize,
    max_data_bytes: usize,
    now: DateTime<Utc>,
) -> Result<Vec<NewEvent>, Problem> {
    let (payload, wrong): (BatchPayload<'_>, Wrong) = http_api::read_json(body, Handling::Strict)?;
    let events = counted(wrong.merge(Ok(payload.events))?, max)?;
    let read = events.into_iter().enumerate().map(|(place, event)| {
        let (payload, wrong) = http_api::read_json(event.get().as_bytes(), Handling::Strict)?;
        wrong.merge(checked(&payload, place, max_data_bytes, now).map_err(Problem::fields))
    });
    read.collect()
}

fn checked(
    payload: &EventPayload<'_>,
    place: usize,
    max_data_bytes: usize,
    now: DateTime<Utc>,
) -> Result<NewEvent, Vec<FieldProblem>> {
    let request = EventRequest::check(payload.draft(), max_data_bytes, now)
        .map_err(|errors| errors.iter().map(field).collect::<Vec<_>>())?;
    let (data, wrong) = against_the_rules(request.data, None);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let context = RequestContext {
        now,
        deadline: Instant::now(),
        traceparent: None,
        key: None,
        handling: Handling::Strict,
        scope: Arc::default(),
    };
    Ok(event(&request, &data, place, &context))
}

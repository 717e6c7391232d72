//! From a payload to an event that can be stored, or to everything that is wrong with it.

use chrono::{DateTime, Utc};
use domain::event::{self, EventError, EventRequest};
use domain::push::PushId;
use event_schema::{PayloadSchema, Violation};
use http_api::{FieldProblem, Problem};
use serde_json::Value;
use store::reseller::NewEvent;
use tokio::time::Instant;

use crate::app::App;
use crate::event::payload::EventPayload;
use crate::event::promise::{self, Promise};

/// Why a payload is not an event.
pub(crate) enum Unacceptable {
    /// These fields are wrong.
    Fields(Vec<FieldProblem>),
    /// It cannot be told now.
    Problem(Problem),
}

/// What all events of a request have in common.
pub(crate) struct Circumstances<'a> {
    pub(crate) now: DateTime<Utc>,
    pub(crate) deadline: Instant,
    pub(crate) traceparent: Option<String>,
    pub(crate) promise: Option<&'a Promise>,
}

/// Makes an event of the payload at a place of the request.
pub(crate) async fn check(
    app: &App,
    payload: &EventPayload<'_>,
    place: usize,
    circumstances: &Circumstances<'_>,
) -> Result<NewEvent, Unacceptable> {
    let draft = payload.draft();
    let checked = EventRequest::check(draft, app.max_data_bytes, circumstances.now);
    let mut wrong: Vec<FieldProblem> = checked.as_ref().err().into_iter().flatten().map(field).collect();
    let sound = |name| !wrong.iter().any(|problem| problem.field == name);
    let event_type = draft.event_type.filter(|_| sound("type"));
    let data = draft.data.filter(|_| sound("data"));
    let mut further = against_the_catalogue(app, event_type, data, circumstances.deadline)
        .await
        .map_err(Unacceptable::Problem)?;
    wrong.append(&mut further);
    match checked {
        Ok(request) if wrong.is_empty() => Ok(event(&request, place, circumstances)),
        _ => Err(Unacceptable::Fields(wrong)),
    }
}

pub(crate) fn field(error: &EventError) -> FieldProblem {
    FieldProblem::new(error.field(), error.to_string())
}

/// What the catalogue, and whoever has to read the data, say about it.
async fn against_the_catalogue(
    app: &App,
    event_type: Option<&str>,
    data: Option<&str>,
    deadline: Instant,
) -> Result<Vec<FieldProblem>, Problem> {
    let mut wrong = Vec::new();
    let mut schema = None;
    if let Some(name) = event_type {
        match app.catalogue.find(name, deadline).await? {
            None => wrong.push(FieldProblem::new(
                "type",
                "is not in the catalogue of event types",
            )),
            Some(known) if known.retired => {
                wrong.push(FieldProblem::new(
                    "type",
                    "is retired: no new events of it are accepted",
                ));
            }
            Some(known) => schema = known.schema,
        }
    }
    if let Some(data) = data {
        wrong.extend(against_the_schema(data, schema.as_deref()));
    }
    Ok(wrong)
}

/// What those who have to read the data say about it.
pub(crate) fn against_the_schema(data: &str, schema: Option<&PayloadSchema>) -> Vec<FieldProblem> {
    // Even without a schema: what could be told apart as JSON may still be beyond those who read it, such as a number
    // that is too large, half a character, or a thousand lists in each other.
    match serde_json::from_str::<Value>(data) {
        Ok(value) => {
            let violations = schema.map(|schema| schema.violations(&value)).unwrap_or_default();
            violations.into_iter().map(violation).collect()
        }
        Err(error) => vec![FieldProblem::new("data", format!("cannot be read: {error}"))],
    }
}

fn violation(violation: Violation) -> FieldProblem {
    FieldProblem::new(format!("data{}", violation.pointer), violation.detail)
}

pub(crate) fn event(request: &EventRequest<'_>, place: usize, circumstances: &Circumstances<'_>) -> NewEvent {
    let now = circumstances.now;
    let id = PushId::at(now).uuid();
    let event_id = request.event_id.map_or_else(|| id.to_string(), str::to_owned);
    let occurred_at = request.occurred_at.unwrap_or(now);
    NewEvent {
        id,
        body: event::body(&event_id, request.event_type, occurred_at, request.data),
        event_id,
        reseller_id: request.reseller_id.to_owned(),
        event_type: request.event_type.to_owned(),
        occurred_at,
        created_at: now,
        traceparent: circumstances.traceparent.clone(),
        keys: promise::keys(request, circumstances.promise, place),
    }
}

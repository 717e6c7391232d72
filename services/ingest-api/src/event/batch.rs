//! `POST /events/batch`: many events in one request, stored together or not at all.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http_api::{FieldCode, FieldProblem, Problem, ProblemKind, Wrong};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::webhook::NewEvent;
use tokio::time::timeout_at;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::event::idempotency::{self, EVENT_ID_REUSED};
use crate::event::lane::Stored;
use crate::event::payload::EventPayload;
use crate::event::submit::{location, not_stored, recall};
use crate::event::validate::{Invalid, check};
use crate::lane::submission::NotStored;
use crate::request::{Admitted, RequestContext, key_reused, mark_replayed};

/// Most wrong fields that are listed.
const TOLD: usize = 100;
/// Events that are checked before others get their turn.
const TURN: usize = 64;

/// Events to tell resellers of.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schema(as = EventBatch)]
pub(crate) struct BatchPayload<'a> {
    /// 1 to reseller.event.batchMax of them, of one reseller or of several.
    #[serde(borrow, default)]
    #[schema(value_type = Vec<EventPayload>, required = true, min_items = 1)]
    pub(crate) events: Option<Vec<&'a RawValue>>,
}

/// What became of the events of a batch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StoredEvents)]
pub(crate) struct BatchAnswer {
    /// In the order of the request.
    events: Vec<StoredEvent>,
}

/// An event that is stored.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredEvent {
    /// Its identifier.
    #[schema(example = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")]
    id: Uuid,
    /// Where it can be looked up.
    #[schema(example = "/events/019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")]
    location: String,
    /// Whether it had been stored by an earlier request, or under the same eventId earlier in this one.
    replayed: bool,
}

/// Hands in many events at once.
///
/// All of them are stored, in one transaction, or none: when anything is wrong with one of them the answer lists what
/// (`events[3].type`), at most 100 fields, and nothing is stored. What holds for an event of `POST /events` holds for each
/// of these.
#[utoipa::path(
    post,
    path = "/events/batch",
    tag = "events",
    operation_id = "submitEvents",
    security(("apiKey" = [])),
    params(
        ("Idempotency-Key" = Option<String>, Header,
            description = "As for a single event, for the batch as a whole.", example = "import-2026-11-21-17"),
        ("traceparent" = Option<String>, Header,
            description = "W3C trace context; the notifications continue the trace. An invalid one is ignored.",
            example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ),
    request_body(
        content = BatchPayload,
        content_type = "application/json",
        description = "text/json and application/*+json are accepted as well. At most 4096 bytes times \
                       reseller.event.batchMax long, or ingest.maxBodyBytes if that is more.",
    ),
    responses(
        (status = 202, description = "Every event is stored.", body = BatchAnswer, headers(
            ("Idempotent-Replayed" = Option<String>,
                description = "true when every event had been stored by an earlier request"),
        )),
    )
)]
pub(crate) async fn submit_batch(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let admitted = Admitted::check(&app, request).await?;
    let share = Arc::clone(&admitted.share);
    // Those of one caller wait for each other first, so that others do not wait behind all of them.
    let own = timeout_at(admitted.deadline, share.batches.acquire()).await;
    let Ok(Ok(_own)) = own else {
        return Err(not_stored(NotStored::Share));
    };
    // Bodies of this size are let in only as many at a time as memory is meant to hold.
    let place = timeout_at(admitted.deadline, Arc::clone(&app.batches).acquire_owned()).await;
    let Ok(Ok(place)) = place else {
        return Err(not_stored(NotStored::Busy));
    };
    let (body, context) = admitted.read(app.max_batch_bytes).await?;
    let (payload, wrong): (BatchPayload<'_>, Wrong) = http_api::read_json(&body, context.handling)?;
    let listed = counted(wrong.merge(Ok(payload.events))?, app.batch_max)?;
    share.take(listed.len())?;
    // It is handed in again when it can be stored, and at a slow pace would have to wait minutes for itself. What the key may not hand in is
    // refused for that each time, and not for the pace.
    let not_counted = |problem: Problem| {
        if [ProblemKind::UNAVAILABLE, ProblemKind::FORBIDDEN].contains(&problem.kind()) {
            share.give_back(listed.len());
        }
        problem
    };
    let events = match check_all(&app, &listed, &context).await {
        Ok(events) => events,
        Err(problem) if problem.kind() == ProblemKind::VALIDATION => {
            let first = recall_all(&app, &listed, &context).await;
            return first.map(accepted).ok_or(problem);
        }
        Err(problem) => return Err(not_counted(problem)),
    };
    let storing = app.event_writer.store_together(events, place, context.deadline);
    let answers = storing.await.map_err(|reason| not_counted(not_stored(reason)))?;
    stored(answers).map(accepted)
}

pub(crate) fn counted(events: Option<Vec<&RawValue>>, max: usize) -> Result<Vec<&RawValue>, Problem> {
    match events {
        Some(events) if (1..=max).contains(&events.len()) => Ok(events),
        given => {
            let detail = format!("must be a list of 1 to {max} events");
            let wrong = FieldProblem::new("events", detail).between(1, max);
            let wrong = if given.is_none() {
                wrong.coded(FieldCode::Missing)
            } else {
                wrong
            };
            Err(Problem::fields(vec![wrong]))
        }
    }
}

async fn check_all(
    app: &App,
    listed: &[&RawValue],
    context: &RequestContext,
) -> Result<Vec<NewEvent>, Problem> {
    let mut events = Vec::with_capacity(listed.len());
    let mut wrong = Vec::new();
    for (place, event) in listed.iter().enumerate() {
        if place % TURN == TURN - 1 {
            tokio::task::yield_now().await;
        }
        let (payload, unread) =
            match http_api::read_json::<EventPayload<'_>>(event.get().as_bytes(), context.handling) {
                Ok(read) => read,
                Err(problem) => {
                    let code = problem.errors().first();
                    let code = code.map_or(FieldCode::WrongType, |first| first.code);
                    let event = FieldProblem::new(format!("events[{place}]"), problem.detail().to_owned());
                    wrong.push(event.coded(code));
                    continue;
                }
            };
        match check(app, (&payload, unread), place, context).await {
            Ok(event) => events.push(event),
            Err(Invalid::Problem(problem)) => {
                let errors = problem.errors().to_vec();
                return Err(problem.with_errors(placed(errors, place).collect()));
            }
            Err(Invalid::Fields(fields)) => wrong.extend(placed(fields, place)),
        }
    }
    if wrong.is_empty() {
        return Ok(events);
    }
    let total = wrong.len();
    if total <= TOLD {
        return Err(Problem::fields(wrong));
    }
    wrong.truncate(TOLD);
    let detail = format!("{total} fields cannot be accepted; the first {TOLD} are listed");
    Err(Problem::new(ProblemKind::VALIDATION, detail).with_errors(wrong))
}

/// What is wrong with the event at this place of the batch.
fn placed(fields: Vec<FieldProblem>, place: usize) -> impl Iterator<Item = FieldProblem> {
    let named = move |problem: FieldProblem| {
        let field = format!("events[{place}].{}", problem.field);
        // A place in the event says nothing of the body.
        FieldProblem {
            field: field.into(),
            line: None,
            column: None,
            ..problem
        }
    };
    fields.into_iter().map(named)
}

/// The events that the same request made when all of them were still acceptable.
async fn recall_all(app: &App, listed: &[&RawValue], context: &RequestContext) -> Option<Vec<StoredEvent>> {
    let mut events = Vec::with_capacity(listed.len());
    for (place, event) in listed.iter().enumerate() {
        let (payload, _): (EventPayload<'_>, Wrong) =
            http_api::read_json(event.get().as_bytes(), context.handling).ok()?;
        let keys = idempotency::remembered(&payload, context, place);
        // A request that was never accepted is found out at its first event.
        let first = recall(app, &keys, context.deadline).await?;
        events.push(repeated(first));
    }
    Some(events)
}

fn stored(answers: Vec<Stored>) -> Result<Vec<StoredEvent>, Problem> {
    let mut events = Vec::with_capacity(answers.len());
    let mut reused = Vec::new();
    for (place, answer) in answers.into_iter().enumerate() {
        match answer {
            Stored::New(id) => events.push(StoredEvent {
                replayed: false,
                ..repeated(id)
            }),
            Stored::Repeated(first) => events.push(repeated(first)),
            Stored::KeyReused(kind) if kind == ProblemKind::IDEMPOTENCY_KEY_REUSED => {
                return Err(key_reused());
            }
            Stored::KeyReused(_) => {
                let detail = "was used before for an event with another type, time or data";
                reused.push(
                    FieldProblem::new(format!("events[{place}].eventId"), detail).coded(FieldCode::Conflict),
                );
            }
        }
    }
    if reused.is_empty() {
        return Ok(events);
    }
    let detail = format!("{} of the event ids belong to other events", reused.len());
    reused.truncate(TOLD);
    Err(Problem::new(EVENT_ID_REUSED, detail).with_errors(reused))
}

fn repeated(id: Uuid) -> StoredEvent {
    StoredEvent {
        id,
        location: location(id),
        replayed: true,
    }
}

fn accepted(events: Vec<StoredEvent>) -> Response {
    let replayed = events.iter().all(|event| event.replayed);
    let mut response = (StatusCode::ACCEPTED, Json(BatchAnswer { events })).into_response();
    mark_replayed(&mut response, replayed);
    response
}

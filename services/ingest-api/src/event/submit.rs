//! `POST /events`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use domain::key::Role;
use http::{HeaderValue, StatusCode, header};
use http_api::{FieldProblem, Problem, ProblemKind, REPLAYED};
use store::webhook::EventKey;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::app::App;
use crate::event::checking::{Circumstances, Unacceptable, check};
use crate::event::lane::Stored;
use crate::event::payload::EventPayload;
use crate::event::promise::{self, Promise};
use crate::lane::intake::NotStored;

/// Hands in an event.
///
/// 202 means that the event is stored durably, together with a notification for each subscription of the reseller that
/// its type matches; where each of them stands is told at the address in `Location`. An event that matches nothing is
/// stored as well. Delivery is at least once.
///
/// Fields that are not listed are ignored. `data` is passed on to the byte.
#[utoipa::path(
    post,
    path = "/events",
    tag = "events",
    operation_id = "submitEvent",
    security(("apiKey" = [])),
    params(
        ("Idempotency-Key" = Option<String>, Header,
            description = "Makes it safe to repeat the request: the same key with the same body is answered as the first \
                           time, and nothing is stored again. 1 to 255 visible ASCII characters, remembered for \
                           reseller.event.keyRetentionInDays, separate for each API key. An eventId in the body does the \
                           same, whichever API key it comes with.",
            example = "order-4711-created"),
        ("traceparent" = Option<String>, Header,
            description = "W3C trace context; the notifications continue the trace. An invalid one is ignored.",
            example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ),
    request_body(
        content = EventPayload,
        content_type = "application/json",
        description = "text/json and application/*+json are accepted as well. At most ingest.maxBodyBytes long.",
    ),
    responses(
        (status = 202, description = "The event is stored. The body is empty.", headers(
            ("Location" = String, description = "Where the event can be looked up: /events/{id}"),
            ("Idempotent-Replayed" = Option<String>,
                description = "true when this is the answer to an earlier request with the same Idempotency-Key or eventId"),
        )),
    )
)]
pub(crate) async fn submit(State(app): State<Arc<App>>, request: Request) -> Response {
    match accept(&app, request).await {
        Ok(accepted) => accepted,
        Err(problem) => problem.into_response(),
    }
}

async fn accept(app: &App, request: Request) -> Result<Response, Problem> {
    let deadline = app.deadline();
    let (head, body) = request.into_parts();
    let caller = app.caller(&head.headers, deadline).await?;
    caller.require(Role::may_ingest)?;
    http_api::require_json(&head.headers)?;
    let key = http_api::idempotency_key(&head.headers)?;
    let body = http_api::read_body(&head.headers, body, app.max_body_bytes, deadline).await?;
    let promise = key.map(|key| Promise::of(caller.key, key, &body));
    let payload: EventPayload<'_> = http_api::read_json(&body)?;
    let circumstances = Circumstances {
        now: app.clock.now(),
        deadline,
        traceparent: http_api::traceparent(&head.headers, app.traced),
        promise: promise.as_ref(),
    };
    let event = match check(app, &payload, 0, &circumstances).await {
        Ok(event) => event,
        Err(Unacceptable::Problem(problem)) => return Err(problem),
        Err(Unacceptable::Fields(wrong)) => {
            let keys = promise::remembered(&payload, promise.as_ref(), 0);
            let first = recall(app, &keys, deadline).await;
            return first.map(replayed).ok_or_else(|| Problem::fields(wrong));
        }
    };
    let keys = event.keys.clone();
    let answers = app.events.store(vec![event], deadline).await;
    match answers.map_err(not_stored)?.first() {
        Some(Stored::New(id)) => Ok(accepted(*id)),
        Some(Stored::Repeated(first)) => Ok(replayed(*first)),
        Some(Stored::KeyReused(place)) => Err(reused(promise::reused(&keys, *place))),
        None => Err(not_stored(NotStored::Refused)),
    }
}

/// The event that the same request made when it was still acceptable: its type may have been retired since, or a limit
/// lowered, and the first answer stands all the same.
pub(crate) async fn recall(app: &App, keys: &[EventKey], deadline: Instant) -> Option<Uuid> {
    if keys.is_empty() {
        return None;
    }
    timeout_at(deadline, app.store.recall_event(keys))
        .await
        .ok()?
        .ok()?
}

fn accepted(id: Uuid) -> Response {
    let location = HeaderValue::try_from(location(id))
        .expect("invariant: a UUID is made of characters that a header may hold");
    let mut response = StatusCode::ACCEPTED.into_response();
    response.headers_mut().insert(header::LOCATION, location);
    response
}

/// Where an event can be looked up.
pub(crate) fn location(id: Uuid) -> String {
    format!("/events/{id}")
}

fn replayed(first: Uuid) -> Response {
    let mut response = accepted(first);
    response
        .headers_mut()
        .insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

fn reused(kind: ProblemKind) -> Problem {
    if kind == ProblemKind::IDEMPOTENCY_KEY_REUSED {
        return Problem::new(kind, "the Idempotency-Key was used before with another body");
    }
    let detail = "was used before for an event with another type, time or data";
    Problem::new(kind, format!("the eventId {detail}"))
        .with_errors(vec![FieldProblem::new("eventId", detail)])
}

/// Why nothing is stored, for the caller.
pub(crate) fn not_stored(reason: NotStored) -> Problem {
    match reason {
        NotStored::Busy => Problem::unavailable("more events arrive than can be stored", 1),
        NotStored::Stopping => Problem::unavailable("the service is about to stop", 1),
        NotStored::Unavailable => Problem::unavailable("the event cannot be stored now", 5),
        NotStored::Late => Problem::unavailable("the event was not stored in time", 5),
        NotStored::Refused => Problem::new(ProblemKind::INTERNAL, "the event could not be stored"),
    }
}

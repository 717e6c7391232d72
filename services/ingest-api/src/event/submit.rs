//! `POST /events`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http_api::{FieldCode, FieldProblem, Problem, ProblemKind, Wrong};
use store::webhook::EventKey;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::app::App;
use crate::event::idempotency;
use crate::event::lane::Stored;
use crate::event::payload::EventPayload;
use crate::event::validate::{Invalid, check};
use crate::lane::submission::NotStored;
use crate::request::{self, Admitted, key_reused};

/// Hands in an event.
///
/// 202 means that the event is stored durably, together with a notification for each subscription of the reseller that
/// its type matches; where each of them stands is told at the address in `Location`. An event that matches nothing is
/// stored as well, and so is one of a reseller that has no subscription or does not exist: its `notifications` are then empty, and
/// `missed` is too. Delivery is at least once.
///
/// Fields that are not listed are refused; a caller that may be ahead of the service sends `Prefer: handling=lenient`, and they are
/// ignored. `data` is passed on to the byte.
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
                           reseller.event.keyRetentionInDays, separate for each API key, \
                           which counts as one with those it was rotated into. An eventId in the body does the \
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
pub(crate) async fn submit(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let admitted = Admitted::check(&app, request).await?;
    let share = Arc::clone(&admitted.share);
    share.take(1)?;
    let (body, context) = admitted.read(app.max_body_bytes).await?;
    let (payload, unread): (EventPayload<'_>, Wrong) = http_api::read_json(&body, context.handling)?;
    let event = match check(&app, (&payload, unread), 0, &context).await {
        Ok(event) => event,
        Err(Invalid::Problem(problem)) => {
            // Each is refused for what it is, and not the second for the pace of the key.
            if problem.kind() == ProblemKind::FORBIDDEN {
                share.give_back(1);
            }
            return Err(problem);
        }
        Err(Invalid::Fields(wrong)) => {
            let keys = idempotency::remembered(&payload, &context, 0);
            let first = recall(&app, &keys, context.deadline).await;
            let first = first.ok_or_else(|| Problem::fields(wrong))?;
            return Ok(request::accepted(location(first), true));
        }
    };
    match app
        .events
        .store(event, &share, context.deadline)
        .await
        .map_err(not_stored)?
    {
        Stored::New(id) => Ok(request::accepted(location(id), false)),
        Stored::Repeated(first) => Ok(request::accepted(location(first), true)),
        Stored::KeyReused(kind) => Err(reused(kind)),
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

/// Where an event can be looked up.
pub(crate) fn location(id: Uuid) -> String {
    format!("/events/{id}")
}

fn reused(kind: ProblemKind) -> Problem {
    if kind == ProblemKind::IDEMPOTENCY_KEY_REUSED {
        return key_reused();
    }
    let detail = "was used before for an event with another type, time or data";
    Problem::new(kind, format!("the eventId {detail}")).with_errors(vec![
        FieldProblem::new("eventId", detail).coded(FieldCode::Conflict),
    ])
}

/// Why nothing is stored, for the caller.
pub(crate) fn not_stored(reason: NotStored) -> Problem {
    request::not_stored(("event", "events"), reason)
}

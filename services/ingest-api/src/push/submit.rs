//! `POST /push`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use domain::key::Role;
use domain::push::{FieldError, Limits, PushId, PushRequest, PushStatus};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_api::{FieldProblem, Problem, ProblemKind, REPLAYED};
use sha2::{Digest as _, Sha256};
use store::push::{IdempotencyKey, Inserted, NewPush};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::app::App;
use crate::lane::intake::NotStored;
use crate::push::payload::Payload;

/// Hands in a push.
///
/// 202 means that the push is stored durably and will be sent, now or when its cron expression allows it; what becomes
/// of it is told at the address in `Location`. Delivery is at least once.
///
/// Fields that are not listed are ignored.
#[utoipa::path(
    post,
    path = "/push",
    tag = "push",
    operation_id = "submitPush",
    security(("apiKey" = [])),
    params(
        ("Idempotency-Key" = Option<String>, Header,
            description = "Makes it safe to repeat the request: the same key with the same body is answered as the first \
                           time, and nothing is stored again. 1 to 255 visible ASCII characters, remembered for \
                           push.idempotency.retentionHours, separate for each API key.",
            example = "order-4711-shipped"),
        ("traceparent" = Option<String>, Header,
            description = "W3C trace context; the push continues the trace. An invalid one is ignored.",
            example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ),
    request_body(
        content = Payload,
        content_type = "application/json",
        description = "text/json and application/*+json are accepted as well. At most ingest.maxBodyBytes long.",
    ),
    responses(
        (status = 202, description = "The push is stored. The body is empty.", headers(
            ("Location" = String, description = "Where the push can be looked up: /push/{id}"),
            ("Idempotent-Replayed" = Option<String>,
                description = "true when this is the answer to an earlier request with the same Idempotency-Key"),
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
    let idempotency = key.map(|key| remember(key, caller.key, &body));
    let push = match build(app, &head.headers, &body, idempotency.clone()) {
        Ok(push) => push,
        Err(problem) => {
            return recall(app, idempotency, deadline)
                .await
                .map(replayed)
                .ok_or(problem);
        }
    };
    let id = push.id;
    match app.pushes.store(push, deadline).await {
        Ok(Inserted::New) => Ok(accepted(id)),
        Ok(Inserted::Repeated(first)) => Ok(replayed(first)),
        Ok(Inserted::KeyReused) => Err(Problem::new(
            ProblemKind::IDEMPOTENCY_KEY_REUSED,
            "the Idempotency-Key was used before with another body",
        )),
        Err(reason) => Err(not_stored(reason)),
    }
}

/// The push that the same request made when it was still acceptable: its window may have passed since, or a limit may
/// have been lowered, and the first answer stands all the same.
async fn recall(app: &App, key: Option<IdempotencyKey>, deadline: Instant) -> Option<PushId> {
    let key = key?;
    timeout_at(deadline, app.store.recall_push(&key))
        .await
        .ok()?
        .ok()?
}

fn build(
    app: &App,
    headers: &HeaderMap,
    body: &[u8],
    idempotency: Option<IdempotencyKey>,
) -> Result<NewPush, Problem> {
    let now = app.clock.now();
    let request = read(body, &app.limits, (now, app.time_zone))?;
    let status = match request.cron_expression {
        Some(_) => PushStatus::Scheduled,
        // The writer makes it PENDING when the gate is closed at that moment.
        None => PushStatus::InMemory,
    };
    Ok(NewPush {
        id: PushId::at(now),
        request,
        status,
        created_at: now,
        traceparent: http_api::traceparent(headers, app.traced),
        idempotency,
    })
}

/// The push that a body hands in.
pub(crate) fn read(body: &[u8], limits: &Limits, at: (DateTime<Utc>, Tz)) -> Result<PushRequest, Problem> {
    let payload: Payload<'_> = http_api::read_json(body)?;
    PushRequest::check(
        payload.platform.as_deref(),
        payload.message_prototype_key,
        payload.push_key,
        payload.message,
        payload.cron_expression,
        limits,
        at,
    )
    .map_err(|errors| not_acceptable(&errors))
}

fn remember(key: &str, owner: Uuid, body: &[u8]) -> IdempotencyKey {
    IdempotencyKey {
        owner,
        key: key.to_owned(),
        request: Sha256::digest(body).into(),
    }
}

fn accepted(id: PushId) -> Response {
    let location = HeaderValue::try_from(format!("/push/{id}"))
        .expect("invariant: a UUID is made of characters that a header may hold");
    let mut response = StatusCode::ACCEPTED.into_response();
    response.headers_mut().insert(header::LOCATION, location);
    response
}

fn replayed(first: PushId) -> Response {
    let mut response = accepted(first);
    response
        .headers_mut()
        .insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

fn not_acceptable(errors: &[FieldError]) -> Problem {
    let errors = errors
        .iter()
        .map(|error| FieldProblem::new(error.field(), error.to_string()));
    Problem::fields(errors.collect())
}

fn not_stored(reason: NotStored) -> Problem {
    match reason {
        NotStored::Busy => Problem::unavailable("more pushes arrive than can be stored", 1),
        NotStored::Stopping => Problem::unavailable("the service is about to stop", 1),
        NotStored::Unavailable => Problem::unavailable("the push cannot be stored now", 5),
        NotStored::Late => Problem::unavailable("the push was not stored in time", 5),
        NotStored::Refused => Problem::new(ProblemKind::INTERNAL, "the push could not be stored"),
    }
}

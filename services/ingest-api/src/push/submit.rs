//! `POST /push`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use domain::push::{FieldError, Limits, PushId, PushRequest, PushStatus};
use domain::scope::{OutOfScope, Scope};
use http_api::{FieldCode, FieldProblem, Handling, Problem, ProblemKind, Wrong};
use store::push::{Inserted, NewPush};
use tokio::time::timeout_at;

use crate::app::App;
use crate::push::payload::Payload;
use crate::request::{self, Admitted, RequestContext, key_reused, not_stored, out_of_scope};

/// What callers call the time at which a push is to be sent, as other services do.
const TIMES: [&str; 22] = [
    "at",
    "cron",
    "deliverat",
    "deliveryat",
    "deliverytime",
    "dueat",
    "notbefore",
    "runat",
    "schedule",
    "scheduleat",
    "scheduled",
    "scheduledat",
    "scheduledfor",
    "scheduledtime",
    "scheduletime",
    "sendafter",
    "sendat",
    "sendon",
    "sendtime",
    "startat",
    "time",
    "when",
];

/// Hands in a push.
///
/// 202 means that the push is stored durably and will be sent, now or when its cron expression allows it; what becomes
/// of it is told at the address in `Location`. Delivery is at least once.
///
/// Fields that are not listed are refused; a caller that may be ahead of the service sends `Prefer: handling=lenient`, and they are
/// ignored.
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
                           push.idempotency.retentionHours, separate for each API key, which counts as one with those \
                           it was rotated into.",
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
pub(crate) async fn submit(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let admitted = Admitted::check(&app, request).await?;
    let share = Arc::clone(&admitted.share);
    share.take(1)?;
    let (body, context) = admitted.read(app.max_body_bytes).await?;
    let at = (context.now, app.time_zone);
    let read = read(&body, context.handling, &app.limits, &context.scope, at);
    let request = match read.map_err(|problem| later(problem, app.time_zone)) {
        Ok(request) => request,
        Err(problem) if problem.kind() == ProblemKind::FORBIDDEN => {
            // Each is refused for what it is, and not the second for the pace of the key.
            share.give_back(1);
            return Err(problem);
        }
        Err(problem) => {
            let first = recall(&app, &context).await;
            return first.map(|first| accepted(first, true)).ok_or(problem);
        }
    };
    let id = PushId::at(context.now);
    let push = NewPush {
        id,
        request,
        // The writer decides, which knows whether its message can be published.
        status: PushStatus::Pending,
        created_at: context.now,
        traceparent: context.traceparent,
        idempotency: context.key,
    };
    match app.pushes.store(push, &share, context.deadline).await {
        Ok(Inserted::New) => Ok(accepted(id, false)),
        Ok(Inserted::Repeated(first)) => Ok(accepted(first, true)),
        Ok(Inserted::KeyReused) => Err(key_reused()),
        Err(reason) => Err(not_stored(("push", "pushes"), reason)),
    }
}

/// The push that the same request made when it was still acceptable: its window may have passed since, or a limit may
/// have been lowered, and the first answer stands all the same.
async fn recall(app: &App, context: &RequestContext) -> Option<PushId> {
    let recalling = app.store.recall_push(context.key.as_ref()?);
    timeout_at(context.deadline, recalling).await.ok()?.ok()?
}

/// With how a push is sent later, where the body has a field for a time, of which there is none.
fn later(problem: Problem, zone: Tz) -> Problem {
    let advice = format!(
        "cronExpression says when a push is sent, as second, minute, hour, day of the month, month, day of the week and year; \"0 30 9 24 12 ? 2027\" \
         is once, at 09:30:00 on 24 December 2027, in the time zone {zone}"
    );
    problem.meaning(&TIMES, "cronExpression", &advice)
}

/// The push that a body hands in, if it is within the scope of its caller's key.
pub(crate) fn read(
    body: &[u8],
    handling: Handling,
    limits: &Limits,
    scope: &Scope,
    at: (DateTime<Utc>, Tz),
) -> Result<PushRequest, Problem> {
    let (payload, wrong): (Payload<'_>, Wrong) = http_api::read_json(body, handling)?;
    let prototype = payload.message_prototype_key.as_deref();
    let refused = scope.refuses_push(prototype);
    // Before anything is said about the rest. A prototype that could not be read looks as if it were missing, and is told so below.
    let is_known = |refused: &&OutOfScope| refused.field.is_empty() || prototype.is_some();
    if let Some(refused) = refused.as_ref().filter(is_known) {
        return Err(out_of_scope(refused));
    }
    let checked = PushRequest::check(
        payload.platform.as_deref(),
        payload.message_prototype_key,
        payload.push_key,
        payload.message,
        payload.cron_expression,
        limits,
        at,
    );
    let request = wrong.merge(checked.map_err(|errors| not_acceptable(&errors)))?;
    match refused {
        Some(refused) => Err(out_of_scope(&refused)),
        None => Ok(request),
    }
}

fn accepted(id: PushId, replayed: bool) -> Response {
    request::accepted(format!("/push/{id}"), replayed)
}

fn not_acceptable(errors: &[FieldError]) -> Problem {
    Problem::fields(errors.iter().map(field).collect())
}

fn field(error: &FieldError) -> FieldProblem {
    let wrong = FieldProblem::new(error.field(), error.to_string());
    match error {
        FieldError::Missing { .. } | FieldError::Blank { .. } => wrong.coded(FieldCode::Missing),
        FieldError::UnknownPlatform { .. } => wrong.coded(FieldCode::UnknownValue),
        FieldError::TooLong { limit, .. } => wrong.at_most(*limit),
        FieldError::NulCharacter { .. } | FieldError::Cron(_) => wrong.coded(FieldCode::WrongFormat),
        FieldError::CronNeverMatches => wrong.coded(FieldCode::OutOfRange),
    }
}

//! Cancelling a push or a notification that has not been sent yet.

use std::fmt;
use std::sync::Arc;

use axum::Json;
use domain::lifecycle::Status;
use domain::reason::PushReason;
use explain::words::time;
use http_api::{Id, Payload, Problem, ProblemKind};
use serde::Serialize;
use store::Cancellation;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::note::{Note, NotePayload};
use crate::request::Operator;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(push))
        .routes(routes!(notification))
}

/// What was cancelled.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Cancelled)]
pub(crate) struct CancelledDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// Where it stands now: GIVEN_UP, or SENT of a notification that had been delivered and was to be sent again.
    #[schema(example = "GIVEN_UP")]
    pub(crate) status: &'static str,
    /// Why nothing is sent.
    #[schema(example = "CANCELLED")]
    pub(crate) reason: &'static str,
    /// Where it stood before.
    #[schema(example = "SCHEDULED")]
    pub(crate) previous: String,
}

type Answer = Result<Json<CancelledDocument>, Problem>;

/// Cancels a push that waits or is queued. It ends as GIVEN_UP with the reason CANCELLED.
///
/// That is final: no replay sends it. Its dead letter is discarded from the beginning, with the note.
#[utoipa::path(
    post, path = "/pushes/{id}/cancel", tag = "cancel", operation_id = "cancelPush", security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The push.")),
    request_body = NotePayload,
    responses((status = 200, description = "It will not be sent.", body = CancelledDocument))
)]
pub(crate) async fn push(operator: Operator, Id(id): Id, Payload(body): Note) -> Answer {
    let act = operator.act(Some(body.required()?));
    let cancelling = operator.app.store.cancel_push(id.into(), act);
    let cancellation = http_api::by(operator.deadline, ("the push", "cancelled"), cancelling).await?;
    answer("push", id, cancellation)
}

/// Cancels a notification that waits or is queued, for the one subscription that it is for.
///
/// That is final: neither its reseller nor a replay sends it. Its dead letter is discarded from the beginning, with the
/// note. One that had been delivered and was to be sent again is SENT as before and has no dead letter.
#[utoipa::path(
    post, path = "/notifications/{id}/cancel", tag = "cancel", operation_id = "cancelNotification",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The notification.")),
    request_body = NotePayload,
    responses((status = 200, description = "It will not be sent.", body = CancelledDocument))
)]
pub(crate) async fn notification(operator: Operator, Id(id): Id, Payload(body): Note) -> Answer {
    let act = operator.act(Some(body.required()?));
    let cancelling = operator.app.store.cancel_notification(id.into(), act);
    let cancellation = http_api::by(operator.deadline, ("the notification", "cancelled"), cancelling).await?;
    answer("notification", id, cancellation)
}

fn answer(kind: &str, id: Uuid, cancellation: Cancellation<impl fmt::Display>) -> Answer {
    let (status, previous) = match cancellation {
        Cancellation::Done(previous) => (Status::GivenUp, previous),
        Cancellation::StaysDelivered(previous) => (Status::Sent, previous),
        Cancellation::BeingSent => {
            return Err(Problem::new(
                ProblemKind::CONFLICT,
                format!("the {kind} is being sent at this moment, so that nothing can stop it"),
            ));
        }
        Cancellation::Before { at, by } => {
            let by = by.map_or(String::new(), |by| format!(" by {by}"));
            return Err(Problem::new(
                ProblemKind::CONFLICT,
                format!("the {kind} was cancelled before, at {}{by}", time(at)),
            ));
        }
        Cancellation::Ended(status) => {
            return Err(Problem::new(
                ProblemKind::CONFLICT,
                format!("the {kind} has ended before: it is {status}"),
            ));
        }
        Cancellation::Unknown => {
            return Err(Problem::new(
                ProblemKind::NOT_FOUND,
                format!("no {kind} has this identifier"),
            ));
        }
    };
    Ok(Json(CancelledDocument {
        id,
        status: status.as_str(),
        // Both lanes call it the same.
        reason: PushReason::Cancelled.as_str(),
        previous: previous.to_string(),
    }))
}

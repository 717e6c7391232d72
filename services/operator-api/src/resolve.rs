//! Replaying and discarding one dead letter.

use std::sync::Arc;

use axum::Json;
use http::StatusCode;
use http_api::{Id, Payload, Problem, ProblemKind};
use store::{DeadLetterState, DeadLetterView, Resolved, Skipped};
use telemetry::Metric;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::note::{Note, NotePayload};
use crate::request::Operator;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(replay))
        .routes(routes!(discard))
}

type Answer = Result<Json<DeadLetterView>, Problem>;

/// Sends again what a dead letter is about.
///
/// A push waits as PENDING, a notification as RETRY, each with all of its attempts ahead. Every open dead letter about it is
/// resolved; if it fails again there will be another one.
#[utoipa::path(
    post, path = "/dead-letters/{id}/replay", tag = "dead letters", operation_id = "replayDeadLetter",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The dead letter.")),
    request_body = NotePayload,
    responses((status = 200, description = "The dead letter as it is now.", body = DeadLetterView))
)]
pub(crate) async fn replay(operator: Operator, Id(id): Id, Payload(body): Note) -> Answer {
    let act = operator.act(body.optional()?);
    let replaying = operator.app.store.replay_dead_letter(id, &act);
    let resolved = http_api::by(operator.deadline, ("the dead letter", "replayed"), replaying).await?;
    if resolved == Resolved::Done {
        Metric::DeadLettersReplayed.increment(1);
    }
    answer(&operator, id, resolved).await
}

/// Puts a dead letter aside: nothing is to be done about it. What it is about stays as it ended.
#[utoipa::path(
    post, path = "/dead-letters/{id}/discard", tag = "dead letters", operation_id = "discardDeadLetter",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The dead letter.")),
    request_body = NotePayload,
    responses((status = 200, description = "The dead letter as it is now.", body = DeadLetterView))
)]
pub(crate) async fn discard(operator: Operator, Id(id): Id, Payload(body): Note) -> Answer {
    let act = operator.act(Some(body.required()?));
    let discarding = operator.app.store.discard_dead_letter(id, &act);
    let resolved = http_api::by(operator.deadline, ("the dead letter", "discarded"), discarding).await?;
    if resolved == Resolved::Done {
        Metric::DeadLettersDiscarded.increment(1);
    }
    answer(&operator, id, resolved).await
}

async fn answer(operator: &Operator, id: Uuid, resolved: Resolved) -> Answer {
    match resolved {
        Resolved::Done => {
            let ids = [id];
            let reading = operator.app.store.find_dead_letters(&ids);
            let found = http_api::by(operator.deadline, ("the dead letter", "read"), reading).await?;
            let view = found.into_iter().next().ok_or_else(unknown)?;
            Ok(Json(view))
        }
        Resolved::Before(state) => Err(conflict(match state {
            DeadLetterState::Discarded => "the dead letter was discarded before",
            DeadLetterState::Replayed | DeadLetterState::Open => "the dead letter was replayed before",
        })),
        Resolved::Refused(Skipped::Cancelled) => Err(Problem::new(CANCELLED, why(Skipped::Cancelled))),
        Resolved::Refused(reason) => Err(conflict(why(reason))),
        Resolved::Unknown => Err(unknown()),
    }
}

/// An operator has cancelled what is to be sent again.
pub(crate) const CANCELLED: ProblemKind = ProblemKind::new(
    "cancelled",
    StatusCode::CONFLICT,
    "An operator has cancelled it",
    "What an operator has cancelled is never sent again; hand it in once more if it is wanted after all.",
);

/// Why there is nothing to replay, and what to do instead.
fn why(reason: Skipped) -> &'static str {
    match reason {
        Skipped::Resolved => "the dead letter was resolved before",
        Skipped::Unfinished => {
            "what it is about has not ended: it will be sent anyhow; discard the dead letter"
        }
        Skipped::Delivered => "what it is about was delivered after all; discard the dead letter",
        Skipped::Cancelled => {
            "an operator has cancelled what it is about, which is final; discard the dead letter if it is open"
        }
        Skipped::Gone => "what it is about is not stored any more; discard the dead letter",
        Skipped::SubscriptionInactive => {
            "its subscription is neither ACTIVE nor DEGRADED, so that it gets nothing; have it activated first"
        }
        Skipped::Malformed => "it is about a message that could not be read; discard the dead letter",
        Skipped::OftenRecovered => "it was sent again by itself often enough",
    }
}

fn conflict(detail: &'static str) -> Problem {
    Problem::new(ProblemKind::CONFLICT, detail)
}

fn unknown() -> Problem {
    Problem::new(ProblemKind::NOT_FOUND, "no dead letter has this identifier")
}

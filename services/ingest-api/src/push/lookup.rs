//! `GET /push/{id}`.
//!
//! It deliberately shows neither the push key nor the text: who may look is not who may read.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use chrono::{DateTime, Utc};
use domain::push::{AttemptStatus, ErrorType, Platform, PushId, PushStatus};
use domain::reason::PushReason;
use http::request::Parts;
use http_api::{Problem, ProblemKind};
use serde::Serialize;
use store::push::{Ahead, AttemptView, HoldView, PushView};
use store::timeline::PushTimeline;
use store::{Lane, PauseView};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;

/// Most pushes that are counted before one that waits: callers ask often, and most of all when much waits. It is some milliseconds of an
/// index.
const AHEAD_MAX: u32 = 20_000;

/// A push as it stands.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Push)]
pub(crate) struct PushDocument {
    /// Its identifier.
    #[schema(example = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")]
    id: Uuid,
    /// Where it stands.
    status: PushStatus,
    /// The same in words.
    #[schema(
        example = "Is tried again at 2026-11-21 12:01:30 UTC (in 30 s): attempt 2 of 5 failed: Swrve answered 503 Service Unavailable."
    )]
    explanation: String,
    /// Why it stands there: PAUSED while it waits because operators have paused the lane, else how an operator has moved it by
    /// hand: REPLAYED or CANCELLED.
    #[schema(example = "REPLAYED")]
    reason: Option<&'static str>,
    /// The platform of the client's device.
    platform: Platform,
    /// Names the message prototype.
    message_prototype_key: Option<String>,
    /// When it may be sent.
    cron_expression: Option<String>,
    /// When it was accepted.
    created_at: DateTime<Utc>,
    /// When its status last changed.
    updated_at: DateTime<Utc>,
    /// When it ended, if it has.
    finished_at: Option<DateTime<Utc>>,
    /// When it is due, if it is SCHEDULED or RETRY.
    next_attempt_at: Option<DateTime<Utc>>,
    /// Attempts to send it so far.
    attempts: u32,
    /// Its attempts, the first one first.
    history: Vec<AttemptDocument>,
}

/// One attempt to send a push.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Attempt)]
pub(crate) struct AttemptDocument {
    /// Counts from 1.
    #[schema(minimum = 1)]
    number: u32,
    /// How far it came.
    status: AttemptStatus,
    /// When it began.
    started_at: DateTime<Utc>,
    /// How long Swrve took to answer, in milliseconds.
    millis: Option<i64>,
    /// Whose fault a failure was.
    error_type: Option<ErrorType>,
    /// The HTTP status of Swrve's answer; null where there was none, and of an attempt of before it was recorded.
    #[schema(example = 503)]
    response_status: Option<u16>,
    /// Swrve's own code, else the HTTP status.
    #[schema(example = 503)]
    swrve_error_code: Option<i64>,
    /// Swrve's message.
    #[schema(example = "Service Unavailable")]
    swrve_error_message: Option<String>,
    /// What went wrong on our side.
    other_error: Option<String>,
}

/// Tells what has become of a push.
///
/// Any API key may ask. The push key and the text are not shown.
#[utoipa::path(
    get,
    path = "/push/{id}",
    tag = "push",
    operation_id = "findPush",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The push's identifier, from Location. What is no identifier is not found.",
        example = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")),
    responses((status = 200, description = "The push as it stands.", body = PushDocument))
)]
pub(crate) async fn find(
    State(app): State<Arc<App>>,
    id: Result<Path<Uuid>, PathRejection>,
    head: Parts,
) -> Result<Json<PushDocument>, Problem> {
    let (caller, deadline) = app.reader(&head).await?;
    let not_found = || Problem::new(ProblemKind::NOT_FOUND, "no push has this identifier");
    let Path(id) = id.map_err(|_| not_found())?;
    let reading = async {
        let store = &app.store;
        let Some(push) = store.find_push(PushId::from(id)).await? else {
            return Ok(None);
        };
        // One that the caller's key may not hand in does not exist for it.
        let prototype = push.message_prototype_key.as_deref();
        if caller.scope.refuses_push(prototype).is_some() {
            return Ok(None);
        }
        let ahead = store.pushes_ahead(&push, AHEAD_MAX).await?;
        let stops = (store.lane_paused(Lane::Push).await?, store.list_holds().await?);
        Ok(Some((push, ahead, stops)))
    };
    let found = http_api::by(deadline, ("the push", "read"), reading).await?;
    let (push, ahead, (paused, holds)) = found.ok_or_else(not_found)?;
    Ok(Json(document((push, ahead), paused, holds, &app)))
}

fn document(
    (push, ahead): (PushView, Option<Ahead>),
    paused: Option<(DateTime<Utc>, Option<DateTime<Utc>>)>,
    holds: Vec<HoldView>,
    app: &App,
) -> PushDocument {
    // Who has paused the lane and why, and what became of its dead letters, is for operators to see.
    let pause = |(paused_at, until)| PauseView {
        scope: "lane".to_owned(),
        key: Lane::Push.to_string(),
        reseller: None,
        name: None,
        note: String::new(),
        paused_by: "an operator".to_owned(),
        paused_at,
        until,
        by_reseller: false,
    };
    let timeline = PushTimeline {
        push,
        ahead,
        dead_letters: Vec::new(),
        acts: Vec::new(),
        pauses: Vec::new(),
        holds: Vec::new(),
    };
    let context = explain::Context {
        now: app.clock.now(),
        pauses: paused.map(pause).into_iter().collect(),
        holds,
        rules: app.rules.clone(),
    };
    let explanation = explain::push(&timeline, &context).headline;
    let push = timeline.push;
    let waits = !push.status.is_terminal() && !push.claimed;
    PushDocument {
        explanation,
        id: push.id.uuid(),
        status: push.status,
        reason: match paused {
            Some(_) if waits => Some("PAUSED"),
            _ => push.reason.map(PushReason::as_str),
        },
        platform: push.platform,
        message_prototype_key: push.message_prototype_key,
        cron_expression: push.cron_expression,
        created_at: push.created_at,
        updated_at: push.updated_at,
        finished_at: push.finished_at,
        next_attempt_at: push.next_attempt_at,
        attempts: push.attempts,
        history: push.history.into_iter().map(attempt).collect(),
    }
}

fn attempt(attempt: AttemptView) -> AttemptDocument {
    AttemptDocument {
        number: attempt.number,
        status: attempt.status,
        started_at: attempt.started_at,
        millis: attempt.millis,
        error_type: attempt.error_type,
        response_status: attempt.response_status,
        swrve_error_code: attempt.swrve_error_code,
        swrve_error_message: attempt.swrve_error_message,
        other_error: attempt.other_error,
    }
}

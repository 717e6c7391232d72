//! Making retries due at once that wait for their time: of one push or notification, of a subscription, of a lane.

use std::fmt;
use std::sync::Arc;

use axum::Json;
use domain::lifecycle::{Attempts, LaneRules};
use http_api::{Id, Name, Payload, Problem, ProblemKind};
use serde::Serialize;
use store::webhook::NotificationsOf;
use store::{Lane, Pausable, RetriesNow, RetryNow};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::note::{Note, NotePayload};
use crate::pauses;
use crate::request::Operator;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(push))
        .routes(routes!(notification))
        .routes(routes!(subscription))
        .routes(routes!(lane))
}

/// What was made due at once.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RetriesNow)]
pub(crate) struct RetriesNowDocument {
    /// How many retries are due now that waited for their time.
    #[schema(example = 46)]
    pub(crate) retries: u64,
    /// Whether others may be left: a request makes at most 1,000 due, and the same request again the next ones.
    pub(crate) more: bool,
    /// What keeps them from being sent all the same: pauses, in words.
    #[schema(example = json!([]))]
    pub(crate) still_paused: Vec<String>,
    /// Of one push or notification, whether the attempt that is due now is its last: unless it succeeds, no other follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_attempt: Option<bool>,
}

type Answer = Result<Json<RetriesNowDocument>, Problem>;

const ONE: RetriesNow = RetriesNow {
    hastened: 1,
    more: false,
};

/// Makes the next attempt of a push in RETRY at once.
///
/// It is the next of the attempts that it has left; none is added.
#[utoipa::path(
    post, path = "/pushes/{id}/retry-now", tag = "retries", operation_id = "retryPushNow", security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The push.")),
    request_body = NotePayload,
    responses((status = 200, description = "It is due now.", body = RetriesNowDocument))
)]
pub(crate) async fn push(operator: Operator, Id(id): Id, Payload(body): Note) -> Answer {
    let hastening = operator
        .app
        .store
        .retry_push_now(id.into(), operator.act(body.optional()?));
    let came = http_api::by(operator.deadline, ("the retry", "made due"), hastening).await?;
    let attempts = is_due("push", came)?;
    let rules = LaneRules::pushes(operator.app.config.push.retry.max_attempts);
    let answer = answer(&operator, ONE, Some(&Pausable::Lane(Lane::Push))).await?;
    Ok(Json(RetriesNowDocument {
        last_attempt: Some(rules.next_is_last(attempts)),
        ..answer
    }))
}

/// Makes the next attempt of a notification in RETRY at once.
///
/// It is the next of the attempts that it has left; none is added. That of a paused subscription waits for the end of the pause.
#[utoipa::path(
    post, path = "/notifications/{id}/retry-now", tag = "retries", operation_id = "retryNotificationNow",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The notification.")),
    request_body = NotePayload,
    responses((status = 200, description = "It is due now.", body = RetriesNowDocument))
)]
pub(crate) async fn notification(operator: Operator, Id(id): Id, Payload(body): Note) -> Answer {
    let store = &operator.app.store;
    let hastening = store.retry_notification_now(id.into(), operator.act(body.optional()?));
    let came = http_api::by(operator.deadline, ("the retry", "made due"), hastening).await?;
    let attempts = is_due("notification", came)?;
    let finding = store.notification_timeline(id);
    let found = http_api::by(operator.deadline, ("the notification", "read"), finding).await?;
    let Some(recipient) = found.map(|it| it.subscription) else {
        return Ok(Json(answer(&operator, ONE, None).await?));
    };
    let retries = operator.app.config.reseller.retry.max_retries;
    let rules = LaneRules::notifications(recipient.retry_plan.retries(retries));
    let answer = answer(&operator, ONE, Some(&Pausable::Subscription(recipient.id))).await?;
    Ok(Json(RetriesNowDocument {
        last_attempt: Some(rules.next_is_last(attempts)),
        ..answer
    }))
}

/// Makes the next attempts at once of all notifications of a subscription that are in RETRY, at most 1,000 of them.
///
/// They are sent at the pace of the subscription. No attempt is added to those that each has left.
#[utoipa::path(
    post, path = "/subscriptions/{id}/retry-now", tag = "retries", operation_id = "retrySubscriptionNow",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription.")),
    request_body = NotePayload,
    responses((status = 200, description = "They are due now.", body = RetriesNowDocument))
)]
pub(crate) async fn subscription(operator: Operator, Id(id): Id, Payload(body): Note) -> Answer {
    let store = &operator.app.store;
    let finding = store.find_any_subscription(id);
    let found = http_api::by(operator.deadline, ("the subscription", "read"), finding).await?;
    if found.is_none() {
        let detail = "no subscription has this identifier";
        return Err(Problem::new(ProblemKind::NOT_FOUND, detail));
    }
    let of = NotificationsOf::Subscription(id);
    let hastening = store.retry_notifications_now(&of, operator.act(body.optional()?));
    let came = http_api::by(operator.deadline, ("the retries", "made due"), hastening).await?;
    Ok(Json(
        answer(&operator, came, Some(&Pausable::Subscription(id))).await?,
    ))
}

/// Makes the next attempts at once of everything in RETRY of a lane, at most 1,000 of them, those that are due first before others.
///
/// They are sent at the pace of the lane. No attempt is added to those that each has left.
#[utoipa::path(
    post, path = "/lanes/{lane}/retry-now", tag = "retries", operation_id = "retryLaneNow", security(("apiKey" = [])),
    params(("lane" = String, Path, description = "push or reseller.", example = "push")),
    request_body = NotePayload,
    responses((status = 200, description = "They are due now.", body = RetriesNowDocument))
)]
pub(crate) async fn lane(operator: Operator, Name(lane): Name, Payload(body): Note) -> Answer {
    let lane = pauses::known(&lane)?;
    let hastening = operator
        .app
        .store
        .retry_lane_now(lane, operator.act(body.optional()?));
    let came = http_api::by(operator.deadline, ("the retries", "made due"), hastening).await?;
    Ok(Json(answer(&operator, came, Some(&Pausable::Lane(lane))).await?))
}

/// The attempts of what is due now.
fn is_due(kind: &str, came: RetryNow<impl fmt::Display>) -> Result<Attempts, Problem> {
    let (problem, detail) = match came {
        RetryNow::Done(attempts) => return Ok(attempts),
        RetryNow::Due => (
            ProblemKind::CONFLICT,
            format!("the {kind} is due already, so that it is sent in its turn"),
        ),
        RetryNow::NoRetry(status) => (
            ProblemKind::CONFLICT,
            format!("the {kind} waits for no retry: it is {status}"),
        ),
        RetryNow::Unknown => (ProblemKind::NOT_FOUND, format!("no {kind} has this identifier")),
    };
    Err(Problem::new(problem, detail))
}

async fn answer(
    operator: &Operator,
    came: RetriesNow,
    of: Option<&Pausable>,
) -> Result<RetriesNowDocument, Problem> {
    let (read, store) = (("the pauses", "read"), &operator.app.store);
    let still_paused = match of {
        Some(of) => http_api::by(operator.deadline, read, store.pauses_of(of)).await?,
        None => Vec::new(),
    };
    Ok(RetriesNowDocument {
        retries: came.hastened,
        more: came.more,
        still_paused,
        last_attempt: None,
    })
}

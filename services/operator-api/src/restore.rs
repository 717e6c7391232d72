//! What brings back at once what services would bring back by themselves in time: a rescue, and the broker's content.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use domain::counted;
use http_api::{Payload, Problem};
use lifecycle::error_chain;
use serde::Serialize;
use store::Requeued;
use telemetry::Metric;
use tokio::time::{Instant, timeout};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::note::{Note, NotePayload};
use crate::request::Operator;

/// How long these may take: they go through all that is queued, batch by batch. Asked once more they go on.
const LIMIT: Duration = Duration::from_secs(25);
/// When to try again while the broker is away, in seconds.
const RETRY_AFTER: u32 = 5;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(rescue))
        .routes(routes!(rebuild))
}

/// What was rescued.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Rescued)]
pub(crate) struct RescuedDocument {
    /// Pushes whose lease had run out.
    pub(crate) pushes: RescuedPushes,
    /// Notifications whose lease had run out.
    pub(crate) notifications: RescuedNotifications,
}

impl RescuedDocument {
    /// What was rescued, in a sentence.
    pub(crate) fn said(&self) -> String {
        let (pushes, notifications) = (&self.pushes, &self.notifications);
        let given_up = pushes.given_up + notifications.given_up;
        let waiting = (pushes.pending, notifications.pending + notifications.retry);
        if waiting == (0, 0) && given_up == 0 {
            return "Nothing was lost, so there was nothing to rescue.".to_owned();
        }
        format!(
            "{} and {} wait again, and are sent by themselves; {} now.",
            counted::of(waiting.0, "push", "pushes"),
            counted::of(waiting.1, "notification", "notifications"),
            counted::of(
                given_up,
                "had used up its attempts and is a dead letter",
                "had used up their attempts and are dead letters"
            ),
        )
    }
}

/// Pushes that were rescued.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RescuedPushes {
    /// Those that wait for the queue again.
    pending: u64,
    /// Those that had used up their attempts.
    given_up: u64,
}

/// Notifications that were rescued.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RescuedNotifications {
    /// Those that wait for their first attempt again.
    pending: u64,
    /// Those that wait for another attempt.
    retry: u64,
    /// Those that had used up their attempts.
    given_up: u64,
}

/// Rescues what was lost, now: everything in a queue or being sent whose lease has run out.
///
/// The retry worker does the same by itself every few seconds.
#[utoipa::path(
    post, path = "/rescue", tag = "restore", operation_id = "rescue", security(("apiKey" = [])),
    request_body = NotePayload,
    responses((status = 200, description = "What there was to rescue.", body = RescuedDocument))
)]
pub(crate) async fn rescue(
    operator: Operator,
    Payload(body): Note,
) -> Result<Json<RescuedDocument>, Problem> {
    let (app, act) = (&operator.app, operator.act(body.optional()?));
    let attempts = app.config.push.retry.max_attempts;
    let retries = app.config.reseller.retry.max_retries;
    let rescuing = app.store.rescue_now(attempts, retries, act);
    let rescued = http_api::by(Instant::now() + LIMIT, ("lost ones", "rescued"), rescuing).await?;
    let (pushes, notifications) = (rescued.pushes, rescued.notifications);
    Metric::PushRescued.increment(pushes.pending + pushes.given_up);
    Metric::PushGivenUp.increment(pushes.given_up);
    Metric::NotificationsRescued
        .increment(notifications.pending + notifications.retry + notifications.given_up);
    Metric::NotificationsGivenUp.increment(notifications.given_up);
    Metric::DeadLetters.increment_with(
        &[("reason", "given_up")],
        pushes.given_up + notifications.given_up,
    );
    Ok(Json(RescuedDocument {
        pushes: RescuedPushes {
            pending: pushes.pending,
            given_up: pushes.given_up,
        },
        notifications: RescuedNotifications {
            pending: notifications.pending,
            retry: notifications.retry,
            given_up: notifications.given_up,
        },
    }))
}

/// Fills the broker again from the database, as after it was wiped.
///
/// Declares exchanges, queues and bindings again; then everything that is queued and not being sent waits for the queues
/// once more, and the retry worker puts it there. Harmless when nothing was lost, and while services run.
#[utoipa::path(
    post, path = "/broker/rebuild", tag = "restore", operation_id = "rebuildBroker", security(("apiKey" = [])),
    request_body = NotePayload,
    responses((status = 200, description = "What waits for the queues again.", body = Requeued))
)]
pub(crate) async fn rebuild(operator: Operator, Payload(body): Note) -> Result<Json<Requeued>, Problem> {
    let (app, act) = (&operator.app, operator.act(body.optional()?));
    let deadline = Instant::now() + LIMIT;
    declare(app).await?;
    let requeuing = app.store.requeue_everything(act);
    let requeued = http_api::by(deadline, ("the broker's content", "rebuilt"), requeuing).await?;
    Ok(Json(requeued))
}

async fn declare(app: &App) -> Result<(), Problem> {
    let away = || Problem::unavailable("the broker cannot be told what queues there are now", RETRY_AFTER);
    match timeout(LIMIT / 2, app.broker.declare()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            tracing::warn!(error = error_chain(&error), "cannot declare the topology");
            Err(away())
        }
        Err(_) => Err(away()),
    }
}

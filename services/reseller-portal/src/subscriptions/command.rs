//! What can be made of a subscription's state: activate, deactivate, pause, resume, verify.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::subscription::Command;
use http_api::{Id, Problem};
use store::webhook::CommandOutcome;
use uuid::Uuid;

use super::SubscriptionDocument;
use crate::app::App;
use crate::problems::{self, SUBSCRIPTION_STATE};
use crate::request::{Manager, Reseller};

type Answer = Result<Json<SubscriptionDocument>, Problem>;

/// Activates a subscription that is DEACTIVATED.
///
/// It is ACTIVE at once when its endpoint was verified in the last 30 days and is the same as then; otherwise, and after it was
/// deactivated for failing, redirecting or answering 410, the endpoint is challenged first. Events of the time in between are not sent by themselves: see replays.
#[utoipa::path(
    post, path = "/subscriptions/{id}/activate", tag = "subscriptions", operation_id = "activateSubscription",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 200, description = "The subscription as it is now.", body = SubscriptionDocument))
)]
pub(crate) async fn activate(State(app): State<Arc<App>>, reseller: Manager, Id(id): Id) -> Answer {
    command(&app, &reseller, id, Command::Activate).await
}

/// Deactivates a subscription.
///
/// Nothing more is sent to it; what was waiting is given up within seconds, and can be replayed later. What was not yet when the subscription is
/// activated again goes on.
#[utoipa::path(
    post, path = "/subscriptions/{id}/deactivate", tag = "subscriptions", operation_id = "deactivateSubscription",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 200, description = "The subscription as it is now.", body = SubscriptionDocument))
)]
pub(crate) async fn deactivate(State(app): State<Arc<App>>, reseller: Manager, Id(id): Id) -> Answer {
    command(&app, &reseller, id, Command::Deactivate).await
}

/// Challenges the endpoint of a subscription that is PENDING_VERIFICATION once more, from the first attempt on.
///
/// At least 10 seconds lie between a challenge and one that is asked for, and twice as much after each time in vain, up to 10 minutes.
#[utoipa::path(
    post, path = "/subscriptions/{id}/verify", tag = "subscriptions", operation_id = "verifySubscription",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 200, description = "The subscription as it is now.", body = SubscriptionDocument))
)]
pub(crate) async fn verify(State(app): State<Arc<App>>, reseller: Manager, Id(id): Id) -> Answer {
    command(&app, &reseller, id, Command::Verify).await
}

/// Pauses a subscription: its events wait until it goes on. One that is paused stays so.
#[utoipa::path(
    post, path = "/subscriptions/{id}/pause", tag = "subscriptions", operation_id = "pauseSubscription",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 200, description = "The subscription as it is now.", body = SubscriptionDocument))
)]
pub(crate) async fn pause(State(app): State<Arc<App>>, reseller: Manager, Id(id): Id) -> Answer {
    set_paused(&app, &reseller, id, true).await
}

/// Lets a paused subscription go on. One that is not paused stays so.
#[utoipa::path(
    post, path = "/subscriptions/{id}/resume", tag = "subscriptions", operation_id = "resumeSubscription",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 200, description = "The subscription as it is now.", body = SubscriptionDocument))
)]
pub(crate) async fn resume(State(app): State<Arc<App>>, reseller: Manager, Id(id): Id) -> Answer {
    set_paused(&app, &reseller, id, false).await
}

async fn command(app: &App, reseller: &Reseller, id: Uuid, command: Command) -> Answer {
    let now = app.now();
    let carry_out = app
        .store
        .command_subscription(&reseller.id, id, command, reseller.act(now));
    match http_api::by(reseller.deadline, ("the subscription", "changed"), carry_out).await? {
        CommandOutcome::Done(view) => Ok(Json(SubscriptionDocument::of(*view, &app.config))),
        CommandOutcome::Refused(refused) => Err(Problem::new(SUBSCRIPTION_STATE, refused.to_string())),
        CommandOutcome::NotBefore(then) => {
            let detail = "the endpoint was challenged a moment ago";
            Err(problems::not_before(detail, then, now))
        }
        CommandOutcome::Unknown => Err(problems::no_subscription()),
    }
}

async fn set_paused(app: &App, reseller: &Reseller, id: Uuid, paused: bool) -> Answer {
    let act = reseller.act(app.now());
    let pause = app.store.pause_subscription(&reseller.id, id, paused, act);
    let found = http_api::by(reseller.deadline, ("the subscription", "changed"), pause).await?;
    let view = found.ok_or_else(problems::no_subscription)?;
    Ok(Json(SubscriptionDocument::of(view, &app.config)))
}

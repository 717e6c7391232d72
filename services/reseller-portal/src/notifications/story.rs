//! `GET /notifications/{id}/story`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::subscription::HeldBack;
use explain::Rules;
use explain::reseller::{Story, Teller};
use http_api::{Id, Problem};
use store::timeline::NotificationTimeline;
use uuid::Uuid;

use super::document::told_failure;
use super::{NotificationDocument, one};
use crate::app::App;
use crate::problems;
use crate::request::Reseller;

/// The latest states of its subscription that are looked at: more changes while a notification waits are left out.
const STATES: u32 = 100;

/// Tells what became of a notification, in sentences: what happened, why it is where it is, and what comes next.
///
/// Each sentence has a `code` and `params` beside it, so that a program need not read it.
#[utoipa::path(
    get, path = "/notifications/{id}/story", tag = "notifications", operation_id = "notificationStory",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The notification's identifier.")),
    responses((status = 200, description = "The story.", body = Story))
)]
pub(crate) async fn story(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
) -> Result<Json<Story>, Problem> {
    let history = history(&app, &reseller, id).await?;
    let held = app.held_back(&reseller, history.subscription.id).await?;
    Ok(Json(told(&app, &reseller, history, held).await?))
}

/// A notification with its story, which are read from the same rows once.
pub(crate) async fn find_with_story(
    app: &App,
    reseller: &Reseller,
    id: Uuid,
) -> Result<(NotificationDocument, Story), Problem> {
    let history = history(app, reseller, id).await?;
    let find = app.store.notification_with_history(&history);
    let found = http_api::by(reseller.deadline, ("the notification", "read"), find).await?;
    let found = found.ok_or_else(problems::no_notification)?;
    let held = app.held_back(reseller, found.subscription).await?;
    let story = told(app, reseller, history, held).await?;
    Ok((one::shown(reseller, found, held), story))
}

async fn history(app: &App, reseller: &Reseller, id: Uuid) -> Result<NotificationTimeline, Problem> {
    let look = app.store.notification_timeline(id);
    let found = http_api::by(reseller.deadline, ("the notification", "read"), look).await?;
    let found =
        found.filter(|history| history.reseller == reseller.id && history.subscription.deleted_at.is_none());
    found.ok_or_else(problems::no_notification)
}

async fn told(
    app: &App,
    reseller: &Reseller,
    mut history: NotificationTimeline,
    held: HeldBack,
) -> Result<Story, Problem> {
    for attempt in &mut history.history {
        let failure = told_failure(&attempt.url, attempt.error_type.take(), attempt.error.take());
        (attempt.error_type, attempt.error) = failure;
    }
    let names = app.store.names_of_acts(&reseller.id);
    let own_names = http_api::by(reseller.deadline, ("the notification", "read"), names).await?;
    let states = app.store.list_states(history.subscription.id, None, STATES);
    let states = http_api::by(reseller.deadline, ("the notification", "read"), states).await?;
    let teller = Teller {
        now: app.now(),
        rules: &Rules::from(&*app.config),
        paused_by: held.paused_by,
        states: &states,
        own_names: &own_names,
    };
    Ok(explain::reseller::notification(&history, &teller))
}

//! `GET /notifications/{id}/story`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use explain::Rules;
use explain::reseller::{Story, Teller};
use http_api::{Id, Problem};

use super::document::told_failure;
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
    params(("id" = uuid::Uuid, Path, description = "The notification's identifier.")),
    responses((status = 200, description = "The story.", body = Story))
)]
pub(crate) async fn story(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
) -> Result<Json<Story>, Problem> {
    let look = app.store.notification_timeline(id);
    let found = http_api::by(reseller.deadline, ("the notification", "read"), look).await?;
    let found =
        found.filter(|history| history.reseller == reseller.id && history.subscription.deleted_at.is_none());
    let mut history = found.ok_or_else(problems::no_notification)?;
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
        paused_by: app.held_back(&reseller, history.subscription.id).await?.paused_by,
        states: &states,
        own_names: &own_names,
    };
    Ok(Json(explain::reseller::notification(&history, &teller)))
}

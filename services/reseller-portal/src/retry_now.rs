//! `POST /subscriptions/{id}/retry-now`: trying at once what of a subscription waits for a retry.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::subscription::PausedBy;
use http_api::{Id, Problem};
use serde::Serialize;
use store::webhook::NotificationsOf;
use utoipa::ToSchema;

use crate::app::App;
use crate::problems;
use crate::request::Resender;

/// What is tried at once.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RetriesNow)]
pub(crate) struct RetriesNowDocument {
    /// How many retries are due now that waited for their time.
    #[schema(example = 46)]
    pub(crate) retries: u64,
    /// Whether others may be left: a request makes at most 1,000 due, and the same request again the next ones.
    pub(crate) more: bool,
    /// Whose pause keeps them from being sent all the same: RESELLER (you have paused the subscription) or OPERATOR; null when none does.
    #[schema(value_type = Option<String>, example = json!(null))]
    pub(crate) paused_by: Option<&'static str>,
}

/// Makes the next attempts at once of all notifications of a subscription that are in RETRY, at most 1,000 of them.
///
/// Those that are due first come before others, at the pace of the subscription. No attempt is added to those that each has left. Those of a paused
/// subscription wait for the end of the pause.
#[utoipa::path(
    post, path = "/subscriptions/{id}/retry-now", tag = "notifications", operation_id = "retrySubscriptionNow",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 200, description = "They are due now.", body = RetriesNowDocument))
)]
pub(crate) async fn retry_now(
    State(app): State<Arc<App>>,
    reseller: Resender,
    Id(id): Id,
) -> Result<Json<RetriesNowDocument>, Problem> {
    let subscription = app.subscription(&reseller, id).await?;
    if !subscription.state.receives() {
        return Err(problems::not_active(subscription.state));
    }
    let of = NotificationsOf::Subscription(id);
    let retry = app.store.retry_notifications_now(&of, reseller.act(app.now()));
    let tried = http_api::by(reseller.deadline, ("the retries", "made due"), retry).await?;
    let held = app.held_back(&reseller, id).await?;
    Ok(Json(RetriesNowDocument {
        retries: tried.hastened,
        more: tried.more,
        paused_by: held.paused_by.map(PausedBy::for_reseller),
    }))
}

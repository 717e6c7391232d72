//! `GET /subscriptions`, `GET` and `DELETE /subscriptions/{id}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::{HeaderName, StatusCode, header};
use http_api::paging::{self, List};
use http_api::{Id, Problem, ReadParams};

use super::SubscriptionDocument;
use super::version::version;
use crate::app::App;
use crate::problems;
use crate::request::{Manager, PartParams, Reseller};

/// Lists the subscriptions, the oldest first.
#[utoipa::path(
    get, path = "/subscriptions", tag = "subscriptions", operation_id = "listSubscriptions",
    security(("apiKey" = [])),
    params(PartParams),
    responses((status = 200, description = "A part of the list.", body = List<SubscriptionDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    ReadParams(params, mut wrong): ReadParams<PartParams>,
) -> Result<Json<List<SubscriptionDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let after = wrong.take(paging::read_id(params.cursor.as_deref()));
    wrong.end()?;
    let list = app.store.list_subscriptions(&reseller.id, after, limit + 1);
    let found = http_api::by(reseller.deadline, ("the subscriptions", "read"), list).await?;
    let show = |view| SubscriptionDocument::of(view, &app.config);
    Ok(Json(List::by_id(found, limit, |view| view.id, show)))
}

/// Shows a subscription.
#[utoipa::path(
    get, path = "/subscriptions/{id}", tag = "subscriptions", operation_id = "findSubscription",
    security(("apiKey" = [])),
    params(("id" = uuid::Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 200, description = "The subscription.", body = SubscriptionDocument,
        headers(("ETag" = String, description = "The version of what can be changed, for If-Match."))))
)]
pub(crate) async fn find(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
) -> Result<([(HeaderName, String); 1], Json<SubscriptionDocument>), Problem> {
    let found = app.subscription(&reseller, id).await?;
    let etag = [(header::ETAG, version(&found))];
    Ok((etag, Json(SubscriptionDocument::of(found, &app.config))))
}

/// Deletes a subscription.
///
/// Nothing more is sent to it; what was waiting is given up. Its notifications, their attempts, its states and its numbers can no longer be read:
/// read them before, or deactivate it instead. What was done to it stays in `GET /activity`.
#[utoipa::path(
    delete, path = "/subscriptions/{id}", tag = "subscriptions", operation_id = "deleteSubscription",
    security(("apiKey" = [])),
    params(("id" = uuid::Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 204, description = "It does not exist any more."))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    reseller: Manager,
    Id(id): Id,
) -> Result<StatusCode, Problem> {
    let delete = app
        .store
        .delete_subscription(&reseller.id, id, reseller.act(app.now()));
    if http_api::by(reseller.deadline, ("the subscription", "deleted"), delete).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(problems::no_subscription())
    }
}

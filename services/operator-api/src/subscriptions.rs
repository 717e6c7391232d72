//! `GET /resellers` and `GET /subscriptions`: who is told of events, where, and how that goes.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::subscription::SubscriptionState;
use http_api::paging::{self, List};
use http_api::{Id, Params, Problem, ProblemKind};
use serde::{Deserialize, Serialize};
use store::webhook::{ResellerView, SubscriptionFilter, SubscriptionView};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::dead_letters::filter::names;
use crate::examined::{text, word};
use crate::request::Viewer;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(resellers))
        .routes(routes!(list))
        .routes(routes!(find))
}

/// Which part of the resellers.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResellerParams {
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// What the previous part gave as `next`.
    cursor: Option<String>,
}

/// A reseller that has subscriptions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Reseller)]
pub(crate) struct ResellerDocument {
    /// Who it is.
    #[schema(example = "acme")]
    id: String,
    /// How many subscriptions it has.
    subscriptions: u64,
    /// How many of them are ACTIVE or DEGRADED, and so are sent notifications.
    active: u64,
    /// How many of them are paused, by the reseller or by an operator.
    paused: u64,
    /// How many of them have failed since their last success.
    failing: u64,
    /// Since when the first of those has.
    failing_since: Option<DateTime<Utc>>,
}

impl From<ResellerView> for ResellerDocument {
    fn from(view: ResellerView) -> Self {
        Self {
            id: view.id,
            subscriptions: view.subscriptions,
            active: view.active,
            paused: view.paused,
            failing: view.failing,
            failing_since: view.failing_since,
        }
    }
}

/// Lists the resellers that have subscriptions, in the order of their names.
#[utoipa::path(
    get, path = "/resellers", tag = "search", operation_id = "listResellers", security(("apiKey" = [])),
    params(ResellerParams),
    responses((status = 200, description = "A part of the list.", body = List<ResellerDocument>))
)]
pub(crate) async fn resellers(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Params(params): Params<ResellerParams>,
) -> Result<Json<List<ResellerDocument>>, Problem> {
    let limit = paging::limit(params.limit)?;
    let after = params.cursor.as_deref().map(read_cursor).transpose()?;
    let listing = app.store.list_resellers(after, limit + 1);
    let mut found = http_api::by(viewer.deadline, ("the resellers", "read"), listing).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next = found
        .last()
        .filter(|_| more)
        .map(|last| format!("{AFTER}{}", last.id));
    let items = found.into_iter().map(ResellerDocument::from).collect();
    Ok(Json(List::new(items, next)))
}

/// What a cursor of the list of resellers begins with.
const AFTER: &str = "after/";

fn read_cursor(cursor: &str) -> Result<&str, Problem> {
    let reseller = cursor
        .strip_prefix(AFTER)
        .filter(|reseller| !reseller.contains('\0'));
    reseller.ok_or_else(|| Problem::query("cursor", "must be what an answer gave as next"))
}

/// Which subscriptions.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SubscriptionParams {
    /// Of this reseller.
    #[param(example = "acme")]
    reseller: Option<String>,
    /// In this state: PENDING_VERIFICATION, ACTIVE, DEGRADED or DEACTIVATED.
    state: Option<String>,
    /// Whether they have failed since their last success.
    failing: Option<bool>,
    /// Whether they are paused, by their reseller or by an operator.
    paused: Option<bool>,
    /// With this in their URL.
    #[param(example = "acme.example")]
    url: Option<String>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// What the previous part gave as `next`.
    cursor: Option<String>,
}

/// A subscription, without its secrets.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SubscriptionListed)]
pub(crate) struct SubscriptionDocument {
    /// Its identifier.
    id: Uuid,
    /// Whose it is.
    #[schema(example = "acme")]
    reseller_id: String,
    /// The reseller's own words.
    description: String,
    /// Where notifications are sent.
    #[schema(example = "https://acme.example/hooks/domains")]
    url: String,
    /// Which events it gets: event types, prefixes such as domain.*, or * for all.
    event_types: Vec<String>,
    /// Who is told about trouble.
    email: String,
    /// When that address was confirmed.
    email_confirmed_at: Option<DateTime<Utc>>,
    /// PENDING_VERIFICATION, ACTIVE, DEGRADED or DEACTIVATED.
    #[schema(example = "ACTIVE")]
    state: &'static str,
    /// Why.
    #[schema(example = "VERIFIED")]
    state_reason: &'static str,
    /// Since when.
    state_changed_at: DateTime<Utc>,
    /// When its reseller paused it.
    paused_at: Option<DateTime<Utc>>,
    /// When an operator paused it, or all of its reseller.
    held_at: Option<DateTime<Utc>>,
    /// The first failed attempt since the last success.
    failing_since: Option<DateTime<Utc>>,
    /// When its endpoint answered its challenge.
    verified_at: Option<DateTime<Utc>>,
    /// What came of the last challenge, if that failed.
    verification_error: Option<String>,
    /// Notifications a day; null: the default, as in the two below.
    daily_quota: Option<u32>,
    /// Attempts a second.
    requests_per_second: Option<u32>,
    /// How long the endpoint may take to answer, in milliseconds.
    timeout_millis: Option<u32>,
    /// When it was made.
    created_at: DateTime<Utc>,
    /// When it was last changed.
    updated_at: DateTime<Utc>,
}

impl From<SubscriptionView> for SubscriptionDocument {
    fn from(view: SubscriptionView) -> Self {
        Self {
            id: view.id,
            reseller_id: view.reseller,
            description: view.description,
            url: view.url,
            event_types: view.event_types,
            email: view.email,
            email_confirmed_at: view.email_confirmed_at,
            state: view.state.as_str(),
            state_reason: view.state_reason.as_str(),
            state_changed_at: view.state_changed_at,
            paused_at: view.paused_at,
            held_at: view.held_at,
            failing_since: view.failing_since,
            verified_at: view.verified_at,
            verification_error: view.verification_error,
            daily_quota: view.daily_quota,
            requests_per_second: view.requests_per_second,
            timeout_millis: view.timeout_millis,
            created_at: view.created_at,
            updated_at: view.updated_at,
        }
    }
}

/// Lists subscriptions, the oldest first.
#[utoipa::path(
    get, path = "/subscriptions", tag = "search", operation_id = "listSubscriptions", security(("apiKey" = [])),
    params(SubscriptionParams),
    responses((status = 200, description = "A part of the list.", body = List<SubscriptionDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Params(params): Params<SubscriptionParams>,
) -> Result<Json<List<SubscriptionDocument>>, Problem> {
    let limit = paging::limit(params.limit)?;
    let after = paging::read_id(params.cursor.as_deref())?;
    let states = names(&SubscriptionState::ALL, SubscriptionState::as_str);
    let filter = SubscriptionFilter {
        reseller: text("reseller", params.reseller.as_deref())?,
        state: word("state", params.state.as_deref(), &states)?,
        failing: params.failing,
        paused: params.paused,
        url: text("url", params.url.as_deref())?,
    };
    let listing = app.store.search_subscriptions(&filter, after, limit + 1);
    let found = http_api::by(viewer.deadline, ("the subscriptions", "read"), listing).await?;
    Ok(Json(List::by_id(
        found,
        limit,
        |view| view.id,
        SubscriptionDocument::from,
    )))
}

/// Shows a subscription.
#[utoipa::path(
    get, path = "/subscriptions/{id}", tag = "search", operation_id = "findSubscription", security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription.")),
    responses((status = 200, description = "The subscription as it is.", body = SubscriptionDocument))
)]
pub(crate) async fn find(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Id(id): Id,
) -> Result<Json<SubscriptionDocument>, Problem> {
    let finding = app.store.find_any_subscription(id);
    let found = http_api::by(viewer.deadline, ("the subscription", "read"), finding).await?;
    let unknown = || Problem::new(ProblemKind::NOT_FOUND, "no subscription has this identifier");
    Ok(Json(found.ok_or_else(unknown)?.into()))
}

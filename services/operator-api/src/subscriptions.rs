//! `GET /resellers` and `GET /subscriptions`: who is told of events, where, and how that goes.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::subscription::SubscriptionState;
use http_api::paging::{self, List};
use http_api::{FieldCode, FieldProblem, Id, Payload, Problem, ProblemKind, ReadParams};
use serde::{Deserialize, Serialize};
use store::webhook::{LimitsChange, ResellerView, SubscriptionFilter, SubscriptionView};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::dead_letter_jobs::given;
use crate::dead_letters::filter::names;
use crate::examined::{text, word};
use crate::note;
use crate::quota_requests::QUOTA_MAX;
use crate::request::{Administrator, Viewer};

/// Most attempts a second.
pub(crate) const REQUESTS_PER_SECOND_MAX: u32 = 100_000;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(resellers))
        .routes(routes!(list))
        .routes(routes!(find))
        .routes(routes!(limit))
}

/// Which resellers.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResellerParams {
    /// Whose name begins with this, A to Z in either case.
    #[param(example = "acme")]
    pub(crate) name: Option<String>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// A reseller that has subscriptions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Reseller)]
pub(crate) struct ResellerDocument {
    /// Who it is.
    #[schema(example = "acme")]
    pub(crate) id: String,
    /// How many subscriptions it has.
    pub(crate) subscriptions: u64,
    /// How many of them are ACTIVE or DEGRADED, and so are sent notifications.
    pub(crate) active: u64,
    /// How many of them are paused, by the reseller or by an operator.
    pub(crate) paused: u64,
    /// How many of them have failed since their last success.
    pub(crate) failing: u64,
    /// Since when the first of those has.
    pub(crate) failing_since: Option<DateTime<Utc>>,
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
    ReadParams(params, mut wrong): ReadParams<ResellerParams>,
) -> Result<Json<List<ResellerDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let after = wrong.take(params.cursor.as_deref().map(read_cursor).transpose());
    let name = wrong.take(text("name", params.name.as_deref()));
    wrong.end()?;
    let listing = app.store.list_resellers(name.as_deref(), after, limit + 1);
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

/// The first `limit` resellers whose names begin with a text.
pub(crate) async fn named_like(
    app: &Arc<App>,
    viewer: Viewer,
    text: &str,
    limit: u32,
) -> Result<List<ResellerDocument>, Problem> {
    let params = ResellerParams {
        name: Some(text.to_owned()),
        limit: Some(limit),
        cursor: None,
    };
    let Json(found) = resellers(State(Arc::clone(app)), viewer, ReadParams::of(params)).await?;
    Ok(found)
}

/// What a cursor of the list of resellers begins with.
const AFTER: &str = "after/";

fn read_cursor(cursor: &str) -> Result<&str, Problem> {
    let reseller = cursor
        .strip_prefix(AFTER)
        .filter(|reseller| !reseller.contains('\0'));
    reseller.ok_or_else(|| {
        Problem::query("cursor", "must be what an answer gave as next").coded(FieldCode::WrongFormat)
    })
}

/// Which subscriptions.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SubscriptionParams {
    /// Of this reseller.
    #[param(example = "acme")]
    pub(crate) reseller: Option<String>,
    /// In this state: PENDING_VERIFICATION, ACTIVE, DEGRADED or DEACTIVATED.
    pub(crate) state: Option<String>,
    /// Whether they have failed since their last success.
    pub(crate) failing: Option<bool>,
    /// Whether they are paused, by their reseller or by an operator.
    pub(crate) paused: Option<bool>,
    /// With this in their URL.
    #[param(example = "acme.example")]
    pub(crate) url: Option<String>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// A subscription, without its secrets.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SubscriptionListed)]
pub(crate) struct SubscriptionDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// Whose it is.
    #[schema(example = "acme")]
    pub(crate) reseller_id: String,
    /// The reseller's own words.
    pub(crate) description: String,
    /// Where notifications are sent.
    #[schema(example = "https://acme.example/hooks/domains")]
    pub(crate) url: String,
    /// Which events it gets: event types, prefixes such as domain.*, or * for all.
    pub(crate) event_types: Vec<String>,
    /// Who is told about trouble.
    pub(crate) email: String,
    /// When that address was confirmed.
    pub(crate) email_confirmed_at: Option<DateTime<Utc>>,
    /// PENDING_VERIFICATION, ACTIVE, DEGRADED or DEACTIVATED.
    #[schema(example = "ACTIVE")]
    pub(crate) state: &'static str,
    /// Why.
    #[schema(example = "VERIFIED")]
    pub(crate) state_reason: &'static str,
    /// Since when.
    pub(crate) state_changed_at: DateTime<Utc>,
    /// When its reseller paused it.
    pub(crate) paused_at: Option<DateTime<Utc>>,
    /// When an operator paused it, or all of its reseller.
    pub(crate) held_at: Option<DateTime<Utc>>,
    /// The first failed attempt since the last success.
    pub(crate) failing_since: Option<DateTime<Utc>>,
    /// When its endpoint answered its challenge.
    pub(crate) verified_at: Option<DateTime<Utc>>,
    /// What came of the last challenge, if that failed.
    pub(crate) verification_error: Option<String>,
    /// Notifications a day; null: the default, as in the two below.
    pub(crate) daily_quota: Option<u32>,
    /// Attempts a second.
    pub(crate) requests_per_second: Option<u32>,
    /// How long the endpoint may take to answer, in milliseconds.
    pub(crate) timeout_millis: Option<u32>,
    /// When it was made.
    pub(crate) created_at: DateTime<Utc>,
    /// When it was last changed.
    pub(crate) updated_at: DateTime<Utc>,
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
    ReadParams(params, mut wrong): ReadParams<SubscriptionParams>,
) -> Result<Json<List<SubscriptionDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let after = wrong.take(paging::read_id(params.cursor.as_deref()));
    let states = names(&SubscriptionState::ALL, SubscriptionState::as_str);
    let filter = SubscriptionFilter {
        reseller: wrong.take(text("reseller", params.reseller.as_deref())),
        state: wrong.take(word("state", params.state.as_deref(), &states)),
        failing: params.failing,
        paused: params.paused,
        url: wrong.take(text("url", params.url.as_deref())),
    };
    wrong.end()?;
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
    Ok(Json(found.ok_or_else(unknown)?.into()))
}

fn unknown() -> Problem {
    Problem::new(ProblemKind::NOT_FOUND, "no subscription has this identifier")
}

/// Limits of a subscription; one that is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = SubscriptionLimits)]
pub(crate) struct LimitsPayload {
    /// Notifications a day; null: the default.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1_000_000_000)]
    pub(crate) daily_quota: Option<Option<i64>>,
    /// Attempts a second; null: the default.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 100_000)]
    pub(crate) requests_per_second: Option<Option<i64>>,
    /// Why; at most 2,000 bytes.
    #[schema(max_length = 2_000)]
    pub(crate) note: Option<String>,
}

/// Sets one limit of a subscription or both, whatever was asked for.
///
/// One that is left out stays as it is. They hold at once, for what waits as for what comes, oldest first.
#[utoipa::path(
    put, path = "/subscriptions/{id}/limits", tag = "quota requests", operation_id = "setSubscriptionLimits",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription.")),
    request_body(content = LimitsPayload,
        example = json!({"dailyQuota": 50000, "requestsPerSecond": null, "note": "for the merger"})),
    responses((status = 200, description = "The subscription as it is now.", body = SubscriptionDocument))
)]
pub(crate) async fn limit(
    State(app): State<Arc<App>>,
    admin: Administrator,
    Id(id): Id,
    Payload(payload): Payload<LimitsPayload>,
) -> Result<Json<SubscriptionDocument>, Problem> {
    let mut wrong = Vec::new();
    if payload.daily_quota.is_none() && payload.requests_per_second.is_none() {
        let detail = "is needed where requestsPerSecond is left out";
        wrong.push(FieldProblem::new("dailyQuota", detail).coded(FieldCode::Missing));
    }
    let mut read = |name, given: Option<Option<i64>>, most| {
        let limit = read_limit(name, given?, most);
        limit.map_err(|problem| wrong.push(problem)).ok()
    };
    let limits = LimitsChange {
        daily_quota: read("dailyQuota", payload.daily_quota, QUOTA_MAX),
        requests_per_second: read(
            "requestsPerSecond",
            payload.requests_per_second,
            REQUESTS_PER_SECOND_MAX,
        ),
    };
    let is_right = wrong.is_empty().then_some(());
    let rest = is_right.ok_or_else(|| Problem::fields(wrong));
    let (note, ()) = note::with(note::optional(payload.note.as_deref()), rest)?;
    let act = admin.act(note, app.now());
    let setting = async {
        match app.store.set_limits(id, limits, act).await? {
            true => app.store.find_any_subscription(id).await,
            false => Ok(None),
        }
    };
    let found = http_api::by(admin.deadline, ("the limits", "set"), setting).await?;
    Ok(Json(found.ok_or_else(unknown)?.into()))
}

fn read_limit(name: &'static str, given: Option<i64>, most: u32) -> Result<Option<u32>, FieldProblem> {
    let Some(limit) = given else {
        return Ok(None);
    };
    let limit = u32::try_from(limit).ok();
    limit
        .filter(|limit| (1..=most).contains(limit))
        .map(Some)
        .ok_or_else(|| {
            FieldProblem::new(name, format!("must be 1 to {most}, or null for the default")).between(1, most)
        })
}

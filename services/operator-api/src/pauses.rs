//! What is paused, and pausing and resuming it: a lane, a subscription, all of a reseller.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use chrono::{DateTime, Utc};
use http_api::{Id, Payload, Problem, ProblemKind, paging::List};
use serde::Serialize;
use store::{Lane, Pausable, PauseChange, PauseView};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::note::NotePayload;
use crate::request::{Operator, Viewer};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(pause_lane))
        .routes(routes!(resume_lane))
        .routes(routes!(pause_subscription))
        .routes(routes!(resume_subscription))
        .routes(routes!(pause_reseller))
        .routes(routes!(resume_reseller))
}

/// A pause that is in force.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Pause)]
pub(crate) struct PauseDocument {
    /// What kind of thing is paused: `lane`, `subscription` or `reseller`.
    #[schema(example = "lane")]
    scope: String,
    /// Which one: the lane's name, the subscription's identifier, the reseller's.
    #[schema(example = "push")]
    key: String,
    /// Whose subscription it is.
    reseller_id: Option<String>,
    /// Why.
    #[schema(example = "Swrve asked us to wait, see incident 17.")]
    note: String,
    /// The name and identifier of the API key.
    #[schema(example = "maria (019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d)")]
    paused_by: String,
    /// Since when.
    paused_at: DateTime<Utc>,
}

impl From<PauseView> for PauseDocument {
    fn from(view: PauseView) -> Self {
        Self {
            scope: view.scope,
            key: view.key,
            reseller_id: view.reseller,
            note: view.note,
            paused_by: view.paused_by,
            paused_at: view.paused_at,
        }
    }
}

/// What came of pausing or resuming something.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PauseChange)]
pub(crate) struct PauseChangeDocument {
    /// What kind of thing.
    #[schema(example = "lane")]
    scope: String,
    /// Which one.
    #[schema(example = "push")]
    key: String,
    /// Whether this request has changed anything; it was so before if not.
    changed: bool,
    /// The pause, while it is in force. That of a pause which was there before has its first note.
    pause: Option<PauseDocument>,
    /// What else keeps it from going on: other pauses, in words.
    #[schema(example = json!([]))]
    still_paused: Vec<String>,
}

/// Lists the pauses that are in force: lanes first, then the longest. A pause of a reseller's own is not among them.
#[utoipa::path(
    get, path = "/pauses", tag = "pauses", operation_id = "listPauses", security(("apiKey" = [])),
    responses((status = 200, description = "All of them.", body = List<PauseDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
) -> Result<Json<List<PauseDocument>>, Problem> {
    let pauses = http_api::by(viewer.deadline, ("the pauses", "read"), app.store.list_pauses()).await?;
    let items = pauses.into_iter().map(PauseDocument::from).collect();
    Ok(Json(List::new(items, None)))
}

/// Pauses a lane.
///
/// Once this is answered nothing more is claimed; what is being sent ends. What comes in is stored and waits.
#[utoipa::path(
    post, path = "/lanes/{lane}/pause", tag = "pauses", operation_id = "pauseLane", security(("apiKey" = [])),
    params(("lane" = String, Path, description = "push or reseller.", example = "push")),
    request_body = NotePayload,
    responses((status = 200, description = "It is paused.", body = PauseChangeDocument))
)]
pub(crate) async fn pause_lane(
    State(app): State<Arc<App>>,
    operator: Operator,
    Path(lane): Path<String>,
    Payload(body): Payload<NotePayload>,
) -> Result<Json<PauseChangeDocument>, Problem> {
    pause(&app, &operator, Pausable::Lane(known(&lane)?), &body).await
}

/// Lets a paused lane go on.
#[utoipa::path(
    post, path = "/lanes/{lane}/resume", tag = "pauses", operation_id = "resumeLane", security(("apiKey" = [])),
    params(("lane" = String, Path, description = "push or reseller.", example = "push")),
    request_body = NotePayload,
    responses((status = 200, description = "It goes on.", body = PauseChangeDocument))
)]
pub(crate) async fn resume_lane(
    State(app): State<Arc<App>>,
    operator: Operator,
    Path(lane): Path<String>,
    Payload(body): Payload<NotePayload>,
) -> Result<Json<PauseChangeDocument>, Problem> {
    resume(&app, &operator, Pausable::Lane(known(&lane)?), &body).await
}

/// Pauses a subscription.
///
/// Its notifications wait; its reseller sees that, and cannot resume it. A pause of the reseller's own is another matter.
#[utoipa::path(
    post, path = "/subscriptions/{id}/pause", tag = "pauses", operation_id = "pauseSubscription",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription.")),
    request_body = NotePayload,
    responses((status = 200, description = "It is paused.", body = PauseChangeDocument))
)]
pub(crate) async fn pause_subscription(
    State(app): State<Arc<App>>,
    operator: Operator,
    Id(id): Id,
    Payload(body): Payload<NotePayload>,
) -> Result<Json<PauseChangeDocument>, Problem> {
    pause(&app, &operator, Pausable::Subscription(id), &body).await
}

/// Lets a subscription go on that an operator has paused, unless something else has it paused as well.
#[utoipa::path(
    post, path = "/subscriptions/{id}/resume", tag = "pauses", operation_id = "resumeSubscription",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription.")),
    request_body = NotePayload,
    responses((status = 200, description = "This pause is over.", body = PauseChangeDocument))
)]
pub(crate) async fn resume_subscription(
    State(app): State<Arc<App>>,
    operator: Operator,
    Id(id): Id,
    Payload(body): Payload<NotePayload>,
) -> Result<Json<PauseChangeDocument>, Problem> {
    resume(&app, &operator, Pausable::Subscription(id), &body).await
}

/// Pauses all subscriptions of a reseller, those included that it makes meanwhile.
#[utoipa::path(
    post, path = "/resellers/{reseller}/pause", tag = "pauses", operation_id = "pauseReseller",
    security(("apiKey" = [])),
    params(("reseller" = String, Path, description = "The reseller.", example = "acme")),
    request_body = NotePayload,
    responses((status = 200, description = "It is paused.", body = PauseChangeDocument))
)]
pub(crate) async fn pause_reseller(
    State(app): State<Arc<App>>,
    operator: Operator,
    Path(reseller): Path<String>,
    Payload(body): Payload<NotePayload>,
) -> Result<Json<PauseChangeDocument>, Problem> {
    pause(&app, &operator, Pausable::Reseller(legible(reseller)?), &body).await
}

/// Lets the subscriptions of a paused reseller go on, save those that have a pause of their own.
#[utoipa::path(
    post, path = "/resellers/{reseller}/resume", tag = "pauses", operation_id = "resumeReseller",
    security(("apiKey" = [])),
    params(("reseller" = String, Path, description = "The reseller.", example = "acme")),
    request_body = NotePayload,
    responses((status = 200, description = "This pause is over.", body = PauseChangeDocument))
)]
pub(crate) async fn resume_reseller(
    State(app): State<Arc<App>>,
    operator: Operator,
    Path(reseller): Path<String>,
    Payload(body): Payload<NotePayload>,
) -> Result<Json<PauseChangeDocument>, Problem> {
    resume(&app, &operator, Pausable::Reseller(legible(reseller)?), &body).await
}

fn known(lane: &str) -> Result<Lane, Problem> {
    lane.parse().map_err(|_| {
        let text = format!("there is no lane {lane:?}: the lanes are push and reseller");
        Problem::new(ProblemKind::NOT_FOUND, text)
    })
}

/// No text of the database holds U+0000, so no reseller is called like that.
fn legible(reseller: String) -> Result<String, Problem> {
    if reseller.contains('\0') {
        return Err(unknown(&Pausable::Reseller(reseller)));
    }
    Ok(reseller)
}

async fn pause(
    app: &App,
    operator: &Operator,
    what: Pausable,
    body: &NotePayload,
) -> Result<Json<PauseChangeDocument>, Problem> {
    let act = operator.act(Some(body.required()?), app.now());
    let done = ("the pause", "made");
    let change = http_api::by(operator.deadline, done, app.store.pause(&what, act)).await?;
    answer(app, operator, what, change).await
}

async fn resume(
    app: &App,
    operator: &Operator,
    what: Pausable,
    body: &NotePayload,
) -> Result<Json<PauseChangeDocument>, Problem> {
    let act = operator.act(body.optional()?, app.now());
    let done = ("the pause", "ended");
    let change = http_api::by(operator.deadline, done, app.store.resume(&what, act)).await?;
    answer(app, operator, what, change).await
}

async fn answer(
    app: &App,
    operator: &Operator,
    what: Pausable,
    change: PauseChange,
) -> Result<Json<PauseChangeDocument>, Problem> {
    if change == PauseChange::Unknown {
        return Err(unknown(&what));
    }
    let read = ("the pauses", "read");
    let pauses = http_api::by(operator.deadline, read, app.store.list_pauses()).await?;
    let obstacles = http_api::by(operator.deadline, read, app.store.other_pauses(&what)).await?;
    let (scope, key) = (what.scope(), what.key());
    let own = pauses
        .into_iter()
        .find(|pause| pause.scope == scope && pause.key == key);
    Ok(Json(PauseChangeDocument {
        scope: scope.to_owned(),
        key,
        changed: change == PauseChange::Changed,
        pause: own.map(PauseDocument::from),
        still_paused: obstacles,
    }))
}

fn unknown(what: &Pausable) -> Problem {
    let detail = match what {
        Pausable::Lane(_) => "there is no such lane",
        Pausable::Subscription(_) => "no subscription has this identifier",
        Pausable::Reseller(_) => "no reseller of this name has a subscription or an API key",
    };
    Problem::new(ProblemKind::NOT_FOUND, detail)
}

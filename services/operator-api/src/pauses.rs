//! What is paused, and pausing and resuming it: a lane, a subscription, all of a reseller.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http_api::{FieldCode, FieldProblem, Id, Name, Payload, Problem, ProblemKind, paging::List};
use serde::{Deserialize, Serialize};
use store::status::{COUNTED_MAX, Depths, PAUSED_COUNTED_MAX, PausedWaiting};
use store::{Lane, Pausable, PauseChange, PauseView, Store};
use tokio::time::timeout;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::note::{self, Note, NotePayload};
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

/// A pause to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = NewPause)]
pub(crate) struct PausePayload {
    /// Why; at most 2,000 bytes.
    #[schema(value_type = String, max_length = 2_000, example = "Swrve asked us to wait, see incident 17.")]
    pub(crate) note: Option<String>,
    /// When it ends by itself; it lasts until it is resumed when this is left out.
    pub(crate) until: Option<DateTime<Utc>>,
}

/// What came of pausing or resuming something.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PauseChange)]
pub(crate) struct PauseChangeDocument {
    /// What kind of thing.
    #[schema(example = "lane")]
    pub(crate) scope: String,
    /// Which one.
    #[schema(example = "push")]
    pub(crate) key: String,
    /// Whether this request has changed anything; it was so before if not.
    pub(crate) changed: bool,
    /// The pause, while it is in force. That of a pause which was there before has its first note and end.
    pub(crate) pause: Option<PauseView>,
    /// What else keeps it from going on: other pauses, in words.
    #[schema(example = json!([]))]
    pub(crate) still_paused: Vec<String>,
}

type Answer = Result<Json<PauseChangeDocument>, Problem>;

/// Most pauses of subscriptions and resellers by one person within an hour that are not dangerous: with more of them a lane stands still.
const PAUSED_WITHOUT_ASKING: u64 = 10;

/// Most pauses of resellers' own that are listed.
const OWN_MAX: u32 = 1_000;

/// Most pauses of which it is counted what waits for their end, and how long that may take.
const COUNTED: usize = 50;
const COUNTING: Duration = Duration::from_secs(2);

/// A pause that is in force, and what waits for its end.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PauseListed)]
pub(crate) struct PauseDocument {
    #[serde(flatten)]
    pub(crate) pause: PauseView,
    /// How many pushes or notifications wait, counted up to one more than `waitingCountedUpTo`; null of those after the first 50, and where
    /// that could not be counted in two seconds.
    #[schema(example = 12)]
    pub(crate) waiting: Option<u64>,
    /// How far it is counted.
    #[schema(example = 10_000)]
    pub(crate) waiting_counted_up_to: u64,
}

/// Lists the pauses that are in force: of lanes, then those by operators, then those that resellers have made of their own subscriptions
/// (`byReseller`), at most 1,000 of those; the longest first.
#[utoipa::path(
    get, path = "/pauses", tag = "pauses", operation_id = "listPauses", security(("apiKey" = [])),
    responses((status = 200, description = "All of them.", body = List<PauseDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
) -> Result<Json<List<PauseDocument>>, Problem> {
    let reading = listed(&app.store);
    let pauses = http_api::by(viewer.deadline, ("the pauses", "read"), reading).await?;
    Ok(Json(List::new(pauses, None)))
}

/// Those that are in force, for pages that do not show what waits for their end.
pub(crate) async fn in_force(app: &App, viewer: Viewer) -> Result<Vec<PauseView>, Problem> {
    http_api::by(viewer.deadline, ("the pauses", "read"), all(&app.store)).await
}

async fn all(store: &Store) -> Result<Vec<PauseView>, store::Error> {
    let mut pauses = store.list_pauses().await?;
    pauses.extend(store.pauses_by_resellers(OWN_MAX).await?);
    Ok(pauses)
}

async fn listed(store: &Store) -> Result<Vec<PauseDocument>, store::Error> {
    let pauses = all(store).await?;
    // What is paused is shown in any case.
    let counted = timeout(COUNTING, counts(store, &pauses)).await;
    let counts = counted
        .map_err(|_| None)
        .and_then(|counted| counted.map_err(Some));
    let counts = counts.unwrap_or_else(|error| {
        let error = error.map_or_else(|| "it takes too long".to_owned(), |error| error.to_string());
        tracing::warn!(error, "could not count what waits for the end of pauses");
        Vec::new()
    });
    let document = |pause: PauseView| PauseDocument {
        waiting: waiting_for(&counts, &pause),
        waiting_counted_up_to: if pause.scope == "lane" {
            COUNTED_MAX
        } else {
            PAUSED_COUNTED_MAX
        },
        pause,
    };
    Ok(pauses.into_iter().map(document).collect())
}

/// What waits for the end of each pause, of as many as are counted.
async fn counts(store: &Store, pauses: &[PauseView]) -> Result<Vec<PausedWaiting>, store::Error> {
    let mut counts = store.waiting_for_pauses(pauses, COUNTED).await?;
    for lane in pauses.iter().filter(|pause| pause.scope == "lane") {
        let depths = if lane.key == Lane::Push.as_str() {
            store.push_depths().await?
        } else {
            store.notification_depths().await?
        };
        counts.push(PausedWaiting {
            scope: lane.scope.clone(),
            key: lane.key.clone(),
            waiting: due(&depths),
        });
    }
    Ok(counts)
}

/// How much waits for the end of one pause of a reseller or a subscription, counted up to one more than [`PAUSED_COUNTED_MAX`]; none where that
/// could not be counted in time.
pub(crate) async fn waiting(app: &App, pause: &PauseView) -> Option<u64> {
    let counting = app.store.waiting_for_pauses(slice::from_ref(pause), 1);
    let counts = timeout(COUNTING, counting).await.ok()?.ok()?;
    waiting_for(&counts, pause)
}

/// What a paused lane keeps back: all that is due there.
pub(crate) fn due(depths: &Depths) -> u64 {
    depths.backlog() + depths.retry
}

/// How many of those that were counted wait for the end of this pause.
pub(crate) fn waiting_for(counts: &[PausedWaiting], pause: &PauseView) -> Option<u64> {
    let mut counts = counts.iter();
    let count = counts.find(|it| it.scope == pause.scope && it.key == pause.key)?;
    Some(count.waiting)
}

/// Pauses a lane.
///
/// Once this is answered nothing more is claimed; what is being sent ends. What comes in is stored and waits.
#[utoipa::path(
    post, path = "/lanes/{lane}/pause", tag = "pauses", operation_id = "pauseLane", security(("apiKey" = [])),
    params(("lane" = String, Path, description = "push or reseller.", example = "push")),
    request_body = PausePayload,
    responses((status = 200, description = "It is paused.", body = PauseChangeDocument))
)]
pub(crate) async fn pause_lane(
    operator: Operator,
    Name(lane): Name,
    Payload(body): Payload<PausePayload>,
) -> Answer {
    let lane = known(&lane)?;
    operator.require_recent()?;
    pause(&operator, Pausable::Lane(lane), &body).await
}

/// Lets a paused lane go on.
#[utoipa::path(
    post, path = "/lanes/{lane}/resume", tag = "pauses", operation_id = "resumeLane", security(("apiKey" = [])),
    params(("lane" = String, Path, description = "push or reseller.", example = "push")),
    request_body = NotePayload,
    responses((status = 200, description = "It goes on.", body = PauseChangeDocument))
)]
pub(crate) async fn resume_lane(operator: Operator, Name(lane): Name, Payload(body): Note) -> Answer {
    resume(&operator, Pausable::Lane(known(&lane)?), &body).await
}

/// Pauses a subscription.
///
/// Its notifications wait; its reseller sees that, and cannot resume it. A pause of the reseller's own is another matter.
#[utoipa::path(
    post, path = "/subscriptions/{id}/pause", tag = "pauses", operation_id = "pauseSubscription",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription.")),
    request_body = PausePayload,
    responses((status = 200, description = "It is paused.", body = PauseChangeDocument))
)]
pub(crate) async fn pause_subscription(
    operator: Operator,
    Id(id): Id,
    Payload(body): Payload<PausePayload>,
) -> Answer {
    pause(&operator, Pausable::Subscription(id), &body).await
}

/// Lets a subscription go on that an operator has paused, unless something else has it paused as well.
#[utoipa::path(
    post, path = "/subscriptions/{id}/resume", tag = "pauses", operation_id = "resumeSubscription",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription.")),
    request_body = NotePayload,
    responses((status = 200, description = "This pause is over.", body = PauseChangeDocument))
)]
pub(crate) async fn resume_subscription(operator: Operator, Id(id): Id, Payload(body): Note) -> Answer {
    resume(&operator, Pausable::Subscription(id), &body).await
}

/// Pauses all subscriptions of a reseller, those included that it makes meanwhile.
#[utoipa::path(
    post, path = "/resellers/{reseller}/pause", tag = "pauses", operation_id = "pauseReseller",
    security(("apiKey" = [])),
    params(("reseller" = String, Path, description = "The reseller.", example = "acme")),
    request_body = PausePayload,
    responses((status = 200, description = "It is paused.", body = PauseChangeDocument))
)]
pub(crate) async fn pause_reseller(
    operator: Operator,
    Name(reseller): Name,
    Payload(body): Payload<PausePayload>,
) -> Answer {
    pause(&operator, Pausable::Reseller(storable(reseller)?), &body).await
}

/// Lets the subscriptions of a paused reseller go on, save those that have a pause of their own.
#[utoipa::path(
    post, path = "/resellers/{reseller}/resume", tag = "pauses", operation_id = "resumeReseller",
    security(("apiKey" = [])),
    params(("reseller" = String, Path, description = "The reseller.", example = "acme")),
    request_body = NotePayload,
    responses((status = 200, description = "This pause is over.", body = PauseChangeDocument))
)]
pub(crate) async fn resume_reseller(operator: Operator, Name(reseller): Name, Payload(body): Note) -> Answer {
    resume(&operator, Pausable::Reseller(storable(reseller)?), &body).await
}

pub(crate) fn known(lane: &str) -> Result<Lane, Problem> {
    lane.parse().map_err(|_| {
        let text = format!("there is no lane {lane:?}: the lanes are push and reseller");
        Problem::new(ProblemKind::NOT_FOUND, text)
    })
}

/// No text of the database holds U+0000, so no reseller is called like that.
fn storable(reseller: String) -> Result<String, Problem> {
    if reseller.contains('\0') {
        return Err(unknown(&Pausable::Reseller(reseller)));
    }
    Ok(reseller)
}

impl PausePayload {
    /// Why, or everything that is wrong with it.
    fn checked(&self, now: DateTime<Utc>) -> Result<&str, Problem> {
        let note = note::required(self.note.as_deref());
        if self.until.is_none_or(|until| until > now) {
            return note;
        }
        let past = Problem::fields(vec![
            FieldProblem::new("until", "must be in the future").coded(FieldCode::OutOfRange),
        ]);
        Err(match note {
            Ok(_) => past,
            Err(problem) => problem.and(past),
        })
    }
}

async fn pause(operator: &Operator, what: Pausable, body: &PausePayload) -> Answer {
    let _alone = match operator.is_stale() {
        true => Some(operator.app.stale.lock().await),
        false => None,
    };
    require_recent(operator).await?;
    let note = body.checked(operator.app.now())?;
    let pausing = operator
        .app
        .store
        .pause_until(&what, body.until, operator.act(Some(note)));
    let change = http_api::by(operator.deadline, ("the pause", "made"), pausing).await?;
    answer(operator, what, change).await
}

async fn require_recent(operator: &Operator) -> Result<(), Problem> {
    if !operator.is_stale() {
        return Ok(());
    }
    let (by, since) = operator.lately();
    let pauses = ["subscription.pause", "reseller.pause"];
    let counting = operator.app.store.count_acts(by, &pauses, since);
    if http_api::by(operator.deadline, ("your pauses", "counted"), counting).await? >= PAUSED_WITHOUT_ASKING {
        operator.require_recent()?;
    }
    Ok(())
}

async fn resume(operator: &Operator, what: Pausable, body: &NotePayload) -> Answer {
    let pausing = operator.app.store.resume(&what, operator.act(body.optional()?));
    let change = http_api::by(operator.deadline, ("the pause", "ended"), pausing).await?;
    answer(operator, what, change).await
}

async fn answer(operator: &Operator, what: Pausable, change: PauseChange) -> Answer {
    if change == PauseChange::Unknown {
        return Err(unknown(&what));
    }
    let (read, store) = (("the pauses", "read"), &operator.app.store);
    let pauses = http_api::by(operator.deadline, read, store.list_pauses()).await?;
    let obstacles = http_api::by(operator.deadline, read, store.other_pauses(&what)).await?;
    let (scope, key) = (what.scope(), what.key());
    let own = pauses
        .into_iter()
        .find(|pause| pause.scope == scope && pause.key == key);
    Ok(Json(PauseChangeDocument {
        scope: scope.to_owned(),
        key,
        changed: change == PauseChange::Changed,
        pause: own,
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

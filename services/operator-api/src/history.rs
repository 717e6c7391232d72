//! `GET /lanes/{lane}/history`: what a lane did in each of the last minutes, as its processes report it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use chrono::{DateTime, Utc};
use http_api::{Params, Problem};
use serde::{Deserialize, Serialize};
use store::LaneMinute;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::pauses::known;
use crate::request::Viewer;

/// Most minutes, and how many when the request does not say: for as long as reports are kept.
const MINUTES_MAX: u32 = 60;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(history))
}

/// How much of the history.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryParams {
    /// How many minutes, the present one included.
    #[param(minimum = 1, maximum = 60, default = 60)]
    pub(crate) minutes: Option<u32>,
}

/// What a lane did by the minute.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LaneHistory)]
pub(crate) struct HistoryDocument {
    /// `push` or `reseller`.
    #[schema(example = "push")]
    pub(crate) lane: &'static str,
    /// The minutes, the present one last: that one is not over.
    pub(crate) items: Vec<MinuteDocument>,
}

/// What a lane did in a minute.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LaneMinute)]
pub(crate) struct MinuteDocument {
    /// Its beginning, by the clock of the database.
    pub(crate) minute: DateTime<Utc>,
    /// How many processes have reported themselves in it. 0: nothing is known of this minute.
    pub(crate) processes: u64,
    /// Pushes or events that were accepted.
    pub(crate) accepted: u64,
    /// Pushes that Swrve accepted, or notifications that their endpoint did.
    pub(crate) delivered: u64,
    /// Pushes or notifications that became FAILED or GIVEN_UP.
    pub(crate) failed: u64,
    /// Attempts that are followed by another.
    pub(crate) retried: u64,
    /// The epochs in which the push lane was led: a new one each time that another process takes over. Empty of the other lane.
    #[schema(example = json!([17]))]
    pub(crate) epochs: Vec<i64>,
}

impl From<LaneMinute> for MinuteDocument {
    fn from(minute: LaneMinute) -> Self {
        Self {
            minute: minute.minute,
            processes: minute.processes,
            accepted: minute.accepted,
            delivered: minute.delivered,
            failed: minute.failed,
            retried: minute.retried,
            epochs: minute.epochs,
        }
    }
}

/// Tells what a lane did in each of the last minutes.
///
/// Added up from what processes report every few seconds and what is kept of it for an hour; what one did between its last report and its end
/// is missing.
#[utoipa::path(
    get, path = "/lanes/{lane}/history", tag = "status", operation_id = "findLaneHistory", security(("apiKey" = [])),
    params(("lane" = String, Path, description = "push or reseller.", example = "push"), HistoryParams),
    responses((status = 200, description = "The minutes.", body = HistoryDocument))
)]
pub(crate) async fn history(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Path(lane): Path<String>,
    Params(params): Params<HistoryParams>,
) -> Result<Json<HistoryDocument>, Problem> {
    let lane = known(&lane)?;
    let minutes = params.minutes.unwrap_or(MINUTES_MAX);
    if !(1..=MINUTES_MAX).contains(&minutes) {
        let detail = format!("must be between 1 and {MINUTES_MAX}");
        return Err(Problem::query("minutes", detail));
    }
    let reading = app.store.lane_minutes(lane, minutes, app.now());
    let found = http_api::by(viewer.deadline, ("the history", "read"), reading).await?;
    let is_led = lane == store::Lane::Push;
    let mut items: Vec<_> = found.into_iter().map(MinuteDocument::from).collect();
    for minute in items.iter_mut().filter(|_| !is_led) {
        minute.epochs.clear();
    }
    Ok(Json(HistoryDocument {
        lane: lane.as_str(),
        items,
    }))
}

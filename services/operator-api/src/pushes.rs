//! `GET /pushes`: pushes of a device, of a prototype, or in a status.
//!
//! A device's id comes in and is compared; no answer, record or log line holds it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::push::{ErrorType, Platform, PushStatus};
use domain::subscription::PausedBy;
use http_api::{Problem, ReadParams, WrongQuery, paging, words};
use serde::{Deserialize, Serialize};
use store::Lane;
use store::push::{PushFilter, PushRow, SWRVE};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::dead_letters::filter::names;
use crate::examined::{Part, accepted_until, ended, late_by, not_indexed, text, times, word};
use crate::request::Viewer;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Which pushes. Has no `Debug`: it holds a device.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PushParams {
    /// For this device: the `pushKey` that they were handed in with. No answer holds it.
    pub(crate) device: Option<String>,
    /// Of this message prototype.
    pub(crate) prototype: Option<String>,
    /// For devices of this platform: IOS or ANDROID.
    pub(crate) platform: Option<String>,
    /// In these statuses, separated by commas: SCHEDULED, PENDING, IN_MEMORY, RETRY, SENT, FAILED, GIVEN_UP; in any when missing.
    #[param(example = "FAILED,GIVEN_UP")]
    pub(crate) status: Option<String>,
    /// Moved by hand for this reason: REPLAYED or CANCELLED.
    pub(crate) reason: Option<String>,
    /// Accepted at this time or later.
    pub(crate) since: Option<DateTime<Utc>>,
    /// Accepted before this time.
    pub(crate) until: Option<DateTime<Utc>>,
    /// Ended at this time or later: sent, failed, given up or cancelled.
    pub(crate) ended_since: Option<DateTime<Utc>>,
    /// Ended before this time.
    pub(crate) ended_until: Option<DateTime<Utc>>,
    /// Ended more than so many seconds after it was accepted, or after its dead letter was last replayed. What waits has not ended.
    #[param(example = 600)]
    pub(crate) late_by_seconds: Option<u32>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// A push in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PushListed)]
pub(crate) struct PushDocument {
    /// Its identifier; `GET /explain/{id}` tells its story.
    pub(crate) id: Uuid,
    /// Where it stands.
    #[schema(example = "SENT")]
    pub(crate) status: &'static str,
    /// Whether a dispatcher is sending it at the moment.
    pub(crate) claimed: bool,
    /// The device's platform: IOS or ANDROID.
    #[schema(example = "IOS")]
    pub(crate) platform: &'static str,
    /// Its message prototype.
    #[serde(rename = "messagePrototypeKey")]
    pub(crate) prototype: Option<String>,
    /// When it may be sent.
    pub(crate) cron_expression: Option<String>,
    /// PAUSED while it waits because an operator has paused the lane, else how an operator has moved it by hand: REPLAYED or CANCELLED.
    #[schema(example = "REPLAYED")]
    pub(crate) reason: Option<&'static str>,
    /// LANE while it waits because an operator has paused the lane.
    #[schema(example = "LANE")]
    pub(crate) paused_by: Option<&'static str>,
    /// Whether it waits because Swrve is out of order: it is sent when Swrve works again, whenever it is due. One that is SCHEDULED waits for its
    /// sending window.
    pub(crate) held: bool,
    /// Attempts so far.
    pub(crate) attempts: u32,
    /// When it is due, if it is SCHEDULED or RETRY.
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    /// When it was accepted.
    pub(crate) created_at: DateTime<Utc>,
    /// When its dead letter was last replayed, from which `lateBySeconds` counts.
    pub(crate) replayed_at: Option<DateTime<Utc>>,
    /// When its status last changed.
    pub(crate) updated_at: DateTime<Utc>,
    /// When it ended: of one that is SENT, when Swrve had taken it.
    pub(crate) finished_at: Option<DateTime<Utc>>,
    /// How its last attempt failed, if it did.
    pub(crate) last_failure: Option<FailureDocument>,
}

/// How an attempt failed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PushFailure)]
pub(crate) struct FailureDocument {
    /// SWRVE, MESSAGE_PROTOTYPE_KEY or OTHER.
    #[schema(example = "SWRVE")]
    pub(crate) error_type: &'static str,
    /// The HTTP status of Swrve's answer; null where there was none, and of an attempt of before it was recorded.
    #[schema(example = 503)]
    pub(crate) response_status: Option<u16>,
    /// Swrve's own code, else the status code of its answer.
    #[schema(example = 503)]
    pub(crate) code: Option<i64>,
    /// The failure in words.
    pub(crate) error: Option<String>,
}

impl PushDocument {
    fn of(push: PushRow, lane_is_paused: bool, lane_is_held: bool) -> Self {
        let waits = !push.status.is_terminal() && !push.claimed;
        let is_paused = lane_is_paused && waits;
        let (code, error) = (push.error_code, push.error);
        Self {
            id: push.id.uuid(),
            status: push.status.as_str(),
            claimed: push.claimed,
            platform: push.platform.as_str(),
            prototype: push.message_prototype_key,
            cron_expression: push.cron_expression,
            reason: match is_paused {
                true => Some("PAUSED"),
                false => push.reason.map(|reason| reason.as_str()),
            },
            paused_by: is_paused.then_some(PausedBy::Lane.as_str()),
            held: lane_is_held && waits && push.status != PushStatus::Scheduled,
            attempts: push.attempts,
            next_attempt_at: push.next_attempt_at,
            created_at: push.created_at,
            replayed_at: push.replayed_at,
            updated_at: push.updated_at,
            finished_at: push.finished_at,
            last_failure: push.error_type.map(|kind| FailureDocument {
                error_type: ErrorType::as_str(kind),
                response_status: push.response_status,
                code,
                error,
            }),
        }
    }
}

/// Lists pushes, the newest first; those of one status that waits by how long they have been due, those of several that all wait the oldest first.
///
/// SCHEDULED, PENDING, IN_MEMORY and RETRY wait: `status=SCHEDULED,PENDING,IN_MEMORY,RETRY` begins with the oldest that waits. It has all that are
/// PENDING, and of the others those among the 10,000 that are due first and the 10,000 that came into the queue first; when more wait, `GET /waiting`
/// says `more`. With other statuses among them, and with `device`, the newest come first. At most 10,000 pushes are looked at for a part, so that
/// one may be short, or even empty, although others follow: only `next` tells the end, and `lookedBackTo` how far such a part has looked.
#[utoipa::path(
    get, path = "/pushes", tag = "search", operation_id = "listPushes", security(("apiKey" = [])),
    params(PushParams),
    responses((status = 200, description = "A part of the list.", body = Part<PushDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    ReadParams(params, mut wrong): ReadParams<PushParams>,
) -> Result<Json<Part<PushDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let after = wrong.take(paging::read_at(params.cursor.as_deref()));
    let filter = wrong.with(filter(&params))?;
    let listing = app.store.list_pushes(&filter, after, limit);
    let found = http_api::by(viewer.deadline, ("the pushes", "read"), listing).await?;
    let look = async {
        let is_paused = app.store.lane_is_paused(Lane::Push).await?;
        Ok((is_paused, app.store.list_holds().await?))
    };
    let look = http_api::by(viewer.deadline, ("what stops the lane", "read"), look).await?;
    let (is_paused, holds) = look;
    let mut holds = holds.iter();
    let is_held = holds.any(|hold| hold.class == SWRVE && hold.answered_at.is_none());
    let found = found.ok_or_else(not_indexed)?;
    let show = |push| PushDocument::of(push, is_paused, is_held);
    Ok(Json(if filter.is_newest_first() {
        Part::newest_first(found, limit, show)
    } else {
        Part::of(found, show)
    }))
}

/// What the parameters say.
pub(crate) fn filter(params: &PushParams) -> Result<PushFilter, Problem> {
    let mut wrong = WrongQuery::default();
    let (since, until) = wrong.take(times(params.since, params.until));
    let known = PushStatus::ALL.map(PushStatus::as_str);
    let statuses: Vec<PushStatus> = wrong.take(words::some_of("status", params.status.as_deref(), &known));
    let can_have_ended = statuses.iter().all(|status| status.is_terminal());
    let (ended_since, ended_until) =
        wrong.take(ended(params.ended_since, params.ended_until, can_have_ended));
    let platforms = names(&Platform::ALL, Platform::as_str);
    let filter = PushFilter {
        device: wrong.take(text("device", params.device.as_deref())),
        prototype: wrong.take(text("prototype", params.prototype.as_deref())),
        platform: wrong.take(word("platform", params.platform.as_deref(), &platforms)),
        statuses,
        reason: wrong.take(word("reason", params.reason.as_deref(), "REPLAYED, CANCELLED")),
        since,
        until: until.or(accepted_until(ended_until)),
        late_by: wrong.take(late_by(params.late_by_seconds, can_have_ended)),
        ended_since,
        ended_until,
    };
    wrong.with(Ok(filter))
}

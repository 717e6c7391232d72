//! `GET /lanes/{lane}/history` and `GET /webpush/history`, what a lane and Web Push did in each of the last minutes, and `GET /lanes/push/pace`,
//! the push lane by the second: as processes report it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use http_api::{FieldProblem, Name, Params, Problem};
use runtime::connections::{AnswerSecond, PaceSecond, Report};
use serde::{Deserialize, Serialize};
use store::push::HoldPeriod;
use store::{LaneMinute, Pausable, PausePeriod, WebpushMinute};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::pauses::known;
use crate::request::Viewer;

/// Most minutes, and how many when the request does not say: for as long as reports are kept.
const MINUTES_MAX: u32 = 60;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(history))
        .routes(routes!(webpush_history))
        .routes(routes!(pace))
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

impl HistoryParams {
    /// The number, if it may be asked for.
    pub(crate) fn checked(&self) -> Result<u32, Problem> {
        let minutes = self.minutes.unwrap_or(MINUTES_MAX);
        if !(1..=MINUTES_MAX).contains(&minutes) {
            let detail = format!("must be between 1 and {MINUTES_MAX}");
            return Err(Problem::parameter(
                FieldProblem::new("minutes", detail).between(1, MINUTES_MAX),
            ));
        }
        Ok(minutes)
    }
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
    /// The outages for which it was held in that time, the first one first.
    pub(crate) holds: Vec<HoldDocument>,
    /// The pauses of the whole lane in that time, the first one first.
    pub(crate) pauses: Vec<PausePeriodDocument>,
}

/// An outage for which a lane was held.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LaneHold)]
pub(crate) struct HoldDocument {
    /// `SWRVE`, or the class in which most endpoints failed.
    #[schema(example = "SWRVE")]
    pub(crate) class: String,
    /// Since when.
    pub(crate) since: DateTime<Utc>,
    /// When Swrve worked again; since then what had waited was sent. Null until then, and of other classes.
    pub(crate) answered_at: Option<DateTime<Utc>>,
    /// When it was over; null while it goes on.
    pub(crate) ended_at: Option<DateTime<Utc>>,
    /// How many probes were sent.
    #[schema(example = 27)]
    pub(crate) probes: u64,
    /// The last failure, in words.
    #[schema(example = "503 Service Unavailable")]
    pub(crate) last_answer: String,
}

impl From<HoldPeriod> for HoldDocument {
    fn from(hold: HoldPeriod) -> Self {
        Self {
            class: hold.class,
            since: hold.since,
            answered_at: hold.answered_at,
            ended_at: hold.ended_at,
            probes: hold.probes.unsigned_abs(),
            last_answer: hold.last_answer,
        }
    }
}

/// A pause of a whole lane.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LanePause)]
pub(crate) struct PausePeriodDocument {
    /// Who paused it.
    #[schema(example = "maria (019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d)")]
    pub(crate) paused_by: String,
    /// Why; empty where that was not recorded.
    #[schema(example = "incident 17")]
    pub(crate) note: String,
    /// Since when.
    pub(crate) paused_at: DateTime<Utc>,
    /// When it ended; null while it is in force.
    pub(crate) resumed_at: Option<DateTime<Utc>>,
    /// When it ends by itself, of one that is in force and does.
    pub(crate) until: Option<DateTime<Utc>>,
}

impl From<PausePeriod> for PausePeriodDocument {
    fn from(pause: PausePeriod) -> Self {
        Self {
            paused_by: pause.paused_by,
            note: pause.note,
            paused_at: pause.paused_at,
            resumed_at: pause.resumed_at,
            until: pause.until,
        }
    }
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
    /// Notifications that went from the queue back into the database because their subscription had its share of the slots. 0 of the push lane.
    pub(crate) put_back: u64,
    /// Most attempts to deliver a notification that were in flight at once, as far as the reports of the minute tell. 0 of the push lane.
    pub(crate) in_flight: u64,
    /// How many attempts may be in flight at once in all processes together. 0 where that is not known, and of the push lane.
    #[schema(example = 1_024)]
    pub(crate) slots: u64,
    /// The epochs in which the push lane was led: a new one begins when another process takes over, and also with a hold, after one, and after a pause of the lane. Empty of the other lane.
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
            put_back: minute.put_back,
            in_flight: minute.in_flight,
            slots: minute.slots,
            epochs: minute.epochs,
        }
    }
}

/// Tells what a lane did in each of the last minutes, and for which outages and pauses it did nothing.
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
    Name(lane): Name,
    Params(params): Params<HistoryParams>,
) -> Result<Json<HistoryDocument>, Problem> {
    let lane = known(&lane)?;
    let minutes = params.checked()?;
    let (store, now) = (&app.store, app.now());
    let since = now - TimeDelta::minutes(minutes.into());
    let reading = async {
        let found = store.lane_minutes(lane, minutes, now).await?;
        let holds = store.holds_since(lane, since, None).await?;
        let pauses = store.pauses_since(&[Pausable::Lane(lane)], since, None).await?;
        Ok((found, holds, pauses))
    };
    let (found, holds, pauses) = http_api::by(viewer.deadline, ("the history", "read"), reading).await?;
    let is_led = lane == store::Lane::Push;
    let mut items: Vec<_> = found.into_iter().map(MinuteDocument::from).collect();
    for minute in items.iter_mut().filter(|_| !is_led) {
        minute.epochs.clear();
    }
    Ok(Json(HistoryDocument {
        lane: lane.as_str(),
        items,
        holds: holds.into_iter().map(HoldDocument::from).collect(),
        pauses: pauses.into_iter().map(PausePeriodDocument::from).collect(),
    }))
}

/// What was done of Web Push by the minute.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebpushHistory)]
pub(crate) struct WebpushHistoryDocument {
    /// The minutes, the present one last: that one is not over.
    pub(crate) items: Vec<WebpushMinuteDocument>,
}

/// What was done of Web Push in a minute.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebpushMinute)]
pub(crate) struct WebpushMinuteDocument {
    /// Its beginning, by the clock of the database.
    pub(crate) minute: DateTime<Utc>,
    /// How many processes have reported themselves in it, whatever they do. 0: nothing is known of this minute.
    pub(crate) processes: u64,
    /// Messages that user agents acknowledged at once.
    pub(crate) direct: u64,
    /// Messages that were stored.
    pub(crate) stored: u64,
    /// Messages that could not be stored; their senders were answered with 503.
    pub(crate) failed: u64,
    /// Connections of user agents that began.
    pub(crate) opened: u64,
}

impl From<WebpushMinute> for WebpushMinuteDocument {
    fn from(minute: WebpushMinute) -> Self {
        Self {
            minute: minute.minute,
            processes: minute.processes,
            direct: minute.direct,
            stored: minute.stored,
            failed: minute.failed,
            opened: minute.opened,
        }
    }
}

/// Tells what was done of Web Push in each of the last minutes.
///
/// Added up from what processes report every few seconds and what is kept of it for an hour; what one did between its last report and its end
/// is missing.
#[utoipa::path(
    get, path = "/webpush/history", tag = "status", operation_id = "findWebpushHistory", security(("apiKey" = [])),
    params(HistoryParams),
    responses((status = 200, description = "The minutes.", body = WebpushHistoryDocument))
)]
pub(crate) async fn webpush_history(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Params(params): Params<HistoryParams>,
) -> Result<Json<WebpushHistoryDocument>, Problem> {
    let reading = app.store.webpush_minutes(params.checked()?, app.now());
    let found = http_api::by(viewer.deadline, ("the history", "read"), reading).await?;
    Ok(Json(WebpushHistoryDocument {
        items: found.into_iter().map(WebpushMinuteDocument::from).collect(),
    }))
}

/// The pace of the push lane.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PushPace)]
pub(crate) struct PaceDocument {
    /// The gap between two starts that is kept at least, in microseconds: `swrve.delayMillis`.
    #[schema(example = 4_000)]
    pub(crate) gap_micros: u64,
    /// The smallest gap of the last two minutes, in microseconds; none when fewer than two sends were started.
    #[schema(example = 4_003)]
    pub(crate) smallest_gap_micros: Option<u64>,
    /// How many sends were started in these two minutes.
    #[schema(example = 30_000)]
    pub(crate) sends: u64,
    /// What Swrve answered in these two minutes.
    pub(crate) answers: AnswersDocument,
    /// The last two minutes by the second, the present one last: what of it is reported yet.
    pub(crate) seconds: Vec<PaceSecondDocument>,
}

/// What the push lane sent in a second.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PushPaceSecond)]
pub(crate) struct PaceSecondDocument {
    /// Its beginning, by the clock of the process that sent.
    pub(crate) second: DateTime<Utc>,
    /// How many sends were started.
    #[schema(example = 250)]
    pub(crate) sends: u64,
    /// The smallest gap between the start of one of them and the start before, in microseconds.
    #[schema(example = 4_003)]
    pub(crate) smallest_gap_micros: Option<u64>,
    /// Most sends that were in flight when one was started.
    #[schema(example = 31)]
    pub(crate) in_flight: u32,
    /// What Swrve answered in it, also to what was sent before.
    pub(crate) answers: AnswersDocument,
    /// The process that sent; another one after a change of leaders.
    pub(crate) process: Option<Uuid>,
}

/// How many answers of Swrve's came of each class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PushAnswers)]
pub(crate) struct AnswersDocument {
    /// 2xx: the push was taken.
    #[schema(example = 249)]
    pub(crate) taken: u64,
    /// A status from 400 to 499.
    #[schema(example = 1)]
    pub(crate) refused: u64,
    /// Another status.
    #[schema(example = 0)]
    pub(crate) failed: u64,
    /// No answer: Swrve could not be reached, or not in time.
    #[schema(example = 0)]
    pub(crate) missing: u64,
}

impl AnswersDocument {
    fn add(&mut self, other: &Self) {
        self.taken += other.taken;
        self.refused += other.refused;
        self.failed += other.failed;
        self.missing += other.missing;
    }
}

impl From<telemetry::pace::Answers> for AnswersDocument {
    fn from(answers: telemetry::pace::Answers) -> Self {
        let [taken, refused, failed, missing] = answers.map(u64::from);
        Self {
            taken,
            refused,
            failed,
            missing,
        }
    }
}

/// Tells the pace of the push lane by the second, for two minutes.
///
/// As the process that leads reports it every 5 seconds, so that the last seconds are missing. Where the clocks of two leaders differ, their
/// seconds stand where each of them puts them.
#[utoipa::path(
    get, path = "/lanes/push/pace", tag = "status", operation_id = "findPushPace", security(("apiKey" = [])),
    responses((status = 200, description = "The seconds.", body = PaceDocument))
)]
pub(crate) async fn pace(State(app): State<Arc<App>>, viewer: Viewer) -> Result<Json<PaceDocument>, Problem> {
    let listing = app.store.list_processes();
    let processes = http_api::by(viewer.deadline, ("the pace", "read"), listing).await?;
    let mut known = HashSet::new();
    // Services of one process report the same.
    let processes = processes
        .into_iter()
        .filter(|process| known.insert(process.process));
    let reports = processes.map(|process| {
        let report: Report = serde_json::from_value(process.state).unwrap_or_default();
        (process.process, (report.pace, report.answers))
    });
    let seconds = seconds(reports, app.now());
    let gap = app.config.swrve.delay.as_micros();
    let mut answers = AnswersDocument::default();
    seconds.iter().for_each(|second| answers.add(&second.answers));
    Ok(Json(PaceDocument {
        gap_micros: u64::try_from(gap).unwrap_or(u64::MAX),
        smallest_gap_micros: seconds.iter().filter_map(|it| it.smallest_gap_micros).min(),
        sends: seconds.iter().map(|it| it.sends).sum(),
        answers,
        seconds,
    }))
}

/// Every second of the last two minutes. What two processes say of one is added up.
fn seconds(
    reports: impl Iterator<Item = (Uuid, (Vec<PaceSecond>, Vec<AnswerSecond>))>,
    now: DateTime<Utc>,
) -> Vec<PaceSecondDocument> {
    let now = now.timestamp();
    let first = now - telemetry::pace::SECONDS + 1;
    let empty = |at: i64| {
        let second = DateTime::UNIX_EPOCH + TimeDelta::seconds(at);
        let empty = PaceSecondDocument {
            second,
            sends: 0,
            smallest_gap_micros: None,
            in_flight: 0,
            answers: AnswersDocument::default(),
            process: None,
        };
        (at, empty)
    };
    let mut seconds: BTreeMap<i64, PaceSecondDocument> = (first..=now).map(empty).collect();
    for (process, (pace, answers)) in reports {
        for PaceSecond(at, sends, gap, in_flight) in pace {
            if let Some(second) = seconds.get_mut(&at) {
                second.sends += u64::from(sends);
                second.smallest_gap_micros = second.smallest_gap_micros.into_iter().chain(gap).min();
                second.in_flight = second.in_flight.max(in_flight);
                second.process = Some(process);
            }
        }
        for AnswerSecond(at, answers) in answers {
            if let Some(second) = seconds.get_mut(&at) {
                second.answers.add(&answers.into());
            }
        }
    }
    seconds.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_of_two_leaders_stand_side_by_side_and_old_ones_are_left_out() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::seconds(1_000);
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let reports = [
            (
                one,
                (
                    vec![PaceSecond(880, 7, None, 1), PaceSecond(998, 250, Some(4_003), 31)],
                    vec![AnswerSecond(880, [7, 0, 0, 0]), AnswerSecond(999, [100, 2, 0, 1])],
                ),
            ),
            (
                other,
                (
                    vec![PaceSecond(998, 1, None, 1), PaceSecond(999, 240, Some(4_001), 12)],
                    vec![AnswerSecond(999, [50, 0, 3, 0])],
                ),
            ),
        ];
        let seconds = seconds(reports.into_iter(), now);
        assert_eq!(seconds.len(), 120);
        let told: Vec<_> = seconds
            .iter()
            .filter(|it| it.sends > 0)
            .map(|it| {
                (
                    it.second.timestamp(),
                    it.sends,
                    it.smallest_gap_micros,
                    it.process,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (998, 251, Some(4_003), Some(other)),
                (999, 240, Some(4_001), Some(other))
            ]
        );
    }
}

//! `GET /dead-letters/timeline`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use domain::dead_letter::FailureClass;
use http_api::{FieldProblem, Params, Problem, WrongQuery};
use serde::{Deserialize, Serialize};
use store::DeadLetterHours;
use utoipa::ToSchema;

use super::filter::FilterText;
use crate::app::App;
use crate::request::Viewer;

/// How many hours are told of when the caller does not say, and at most.
const DEFAULT_HOURS: u32 = 24;
const HOURS_MAX: u32 = 672;
/// How many groups are shown when the caller does not say, and at most.
const DEFAULT_LIMIT: u32 = 100;
const LIMIT_MAX: u32 = 300;

/// Which dead letters, over how many hours.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TimelineParams {
    /// Of this lane: `push` or `reseller`.
    pub(crate) lane: Option<String>,
    /// In this state: `OPEN`, `REPLAYED`, `DISCARDED`, or `ALL`.
    #[param(default = "ALL")]
    pub(crate) state: Option<String>,
    /// For this reason: `FAILED`, `GIVEN_UP`, `REJECTED` or `MALFORMED`.
    pub(crate) reason: Option<String>,
    /// Of this kind of failure; `*` at the end stands for anything.
    #[param(example = "delivery/http/*")]
    pub(crate) fingerprint: Option<String>,
    /// Where the failure was: scheme, host and port of the endpoint, or Swrve's code.
    #[param(example = "https://hooks.acme.example")]
    pub(crate) target: Option<String>,
    /// The hours up to now, the one that has begun included.
    #[param(minimum = 1, maximum = 672, default = 24)]
    pub(crate) hours: Option<u32>,
    /// How many groups; with 0 only the sums are counted.
    #[param(minimum = 0, maximum = 300, default = 100)]
    pub(crate) limit: Option<u32>,
}

/// When the dead letters of a group were written.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetterTimeline)]
pub(crate) struct GroupTimeline {
    /// `push` or `reseller`.
    #[schema(example = "reseller")]
    pub(crate) lane: &'static str,
    /// What the failures have in common.
    #[schema(example = "delivery/http/503/html")]
    pub(crate) fingerprint: String,
    /// The class of the failure, as in the list of groups.
    #[schema(example = "http-5xx")]
    pub(crate) kind: &'static str,
    /// Where the failures were.
    #[schema(example = "https://hooks.acme.example")]
    pub(crate) target: String,
    /// How many were written in each hour, the first hour first.
    #[schema(example = json!([0, 0, 12, 40]))]
    pub(crate) counts: Vec<u64>,
}

/// When dead letters were written.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetterTimelines)]
pub(crate) struct TimelineDocument {
    /// When the first hour began. Hours begin with those of UTC.
    pub(crate) since: DateTime<Utc>,
    /// How many were written in each hour in all groups, those that are not shown included, the first hour first.
    #[schema(example = json!([0, 3, 12, 40]))]
    pub(crate) counts: Vec<u64>,
    /// The groups with the most dead letters in these hours, the largest one first.
    pub(crate) items: Vec<GroupTimeline>,
}

/// Counts dead letters by the hour in which they were written.
///
/// Those that have been replayed or discarded since are among them, unless `state` says otherwise.
#[utoipa::path(
    get, path = "/dead-letters/timeline", tag = "dead letters", operation_id = "timelineOfDeadLetters",
    security(("apiKey" = [])), params(TimelineParams),
    responses((status = 200, description = "The largest groups of these hours.", body = TimelineDocument))
)]
pub(crate) async fn timeline(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Params(params): Params<TimelineParams>,
) -> Result<Json<TimelineDocument>, Problem> {
    let filter = FilterText {
        lane: params.lane.as_deref(),
        state: params.state.as_deref().or(Some("ALL")),
        reason: params.reason.as_deref(),
        fingerprint: params.fingerprint.as_deref(),
        target: params.target.as_deref(),
        ..FilterText::default()
    };
    let mut wrong = WrongQuery::default();
    let filter = wrong.take(filter.checked());
    let hours = wrong.take(within(
        "hours",
        params.hours.unwrap_or(DEFAULT_HOURS),
        (1, HOURS_MAX),
    ));
    let limit = wrong.take(within(
        "limit",
        params.limit.unwrap_or(DEFAULT_LIMIT),
        (0, LIMIT_MAX),
    ));
    wrong.end()?;
    let since = hour_of(app.now()) - TimeDelta::hours(i64::from(hours) - 1);
    let counting = async {
        let span = (since, hours as usize);
        let counts = app.store.dead_letters_by_hour(&filter, span).await?;
        let groups = match limit {
            0 => Vec::new(),
            _ => app.store.dead_letter_hours(&filter, span, limit).await?,
        };
        Ok((counts, groups))
    };
    let (counts, groups) = http_api::by(viewer.deadline, ("the dead letters", "counted"), counting).await?;
    Ok(Json(TimelineDocument {
        since,
        counts,
        items: groups.into_iter().map(GroupTimeline::from).collect(),
    }))
}

pub(super) fn within(name: &'static str, number: u32, (least, most): (u32, u32)) -> Result<u32, Problem> {
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(Problem::parameter(
        FieldProblem::new(name, format!("must be between {least} and {most}")).between(least, most),
    ))
}

/// When the hour of this time began.
fn hour_of(at: DateTime<Utc>) -> DateTime<Utc> {
    let into = TimeDelta::seconds(i64::from(at.minute()) * 60 + i64::from(at.second()));
    at - into - TimeDelta::nanoseconds(i64::from(at.nanosecond()))
}

impl From<DeadLetterHours> for GroupTimeline {
    fn from(hours: DeadLetterHours) -> Self {
        Self {
            lane: hours.lane.as_str(),
            kind: FailureClass::of(&hours.fingerprint).as_str(),
            fingerprint: hours.fingerprint,
            target: hours.target,
            counts: hours.counts,
        }
    }
}

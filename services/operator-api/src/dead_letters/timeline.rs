//! `GET /dead-letters/timeline`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use domain::dead_letter::FailureClass;
use http_api::{FieldCode, FieldProblem, Params, Problem, WrongQuery};
use serde::{Deserialize, Serialize};
use store::{DeadLetterFilter, DeadLetterHours, DeadLetterLane, DeadLettersBy, Hours, ResellerDeadLetters};
use utoipa::ToSchema;

use super::filter::{FilterText, words};
use crate::app::App;
use crate::examined::times;
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
    /// About notifications for this subscription.
    pub(crate) subscription: Option<String>,
    /// About notifications for this reseller.
    pub(crate) reseller: Option<String>,
    /// About events of this type.
    #[param(example = "domain.created")]
    pub(crate) event_type: Option<String>,
    /// About pushes of this message prototype.
    pub(crate) prototype: Option<String>,
    /// What those of a group have in common: `cause`, their failure and where it was; `endpoint`, where it was; or `reseller`, whose they are.
    #[param(default = "cause")]
    pub(crate) by: Option<String>,
    /// The hour of this time is the first one; not beside `hours`. At most 672 hours before `until`.
    pub(crate) since: Option<DateTime<Utc>>,
    /// The last hour is the one that ends then or goes on; the present one when missing.
    pub(crate) until: Option<DateTime<Utc>>,
    /// So many hours up to `until`, the one that has begun included.
    #[param(minimum = 1, maximum = 672, default = 24)]
    pub(crate) hours: Option<u32>,
    /// How many groups; with 0 only the sums are counted.
    #[param(minimum = 0, maximum = 300, default = 100)]
    pub(crate) limit: Option<u32>,
}

/// When the dead letters of a group were written.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterTimeline)]
pub(crate) struct GroupTimeline {
    /// `push` or `reseller`.
    #[schema(example = "reseller")]
    pub(crate) lane: &'static str,
    /// What the failures have in common; null by endpoint and by reseller.
    #[schema(example = "delivery/http/503/html")]
    pub(crate) fingerprint: Option<String>,
    /// The class of the failure, as in the list of groups; null by endpoint and by reseller.
    #[schema(example = "http-5xx")]
    pub(crate) kind: Option<&'static str>,
    /// Where the failures were; null by reseller.
    #[schema(example = "https://hooks.acme.example")]
    pub(crate) target: Option<String>,
    /// Whose they are, by reseller; null otherwise.
    #[schema(example = "acme")]
    pub(crate) reseller_id: Option<String>,
    /// How many were written in each hour, the first hour first.
    #[schema(example = json!([0, 0, 12, 40]))]
    pub(crate) counts: Vec<u64>,
}

/// When dead letters were written.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterTimelines)]
pub(crate) struct TimelineDocument {
    /// When the first hour began. Hours begin with those of UTC.
    pub(crate) since: DateTime<Utc>,
    /// How many were written in each hour in all groups, those that are not shown included, the first hour first.
    #[schema(example = json!([0, 3, 12, 40]))]
    pub(crate) counts: Vec<u64>,
    /// The groups with the most dead letters in these hours, the largest one first.
    pub(crate) items: Vec<GroupTimeline>,
    /// Whether counting was given up: then the earlier of these hours may have had more.
    pub(crate) at_least: bool,
}

/// Counts dead letters by the hour in which they were written.
///
/// Those that have been replayed or discarded since are among them, unless `state` says otherwise. With `subscription`, `reseller`, `eventType` and
/// `prototype` the newest 10,000 are counted one by one, and by reseller the newest of each, about 10,000 in all: `atLeast` says so.
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
    let (since, until) = (params.since, params.until);
    let mut wrong = WrongQuery::default();
    let filter = wrong.take(text_of(&params).checked());
    let by = wrong.take(by(params.by.as_deref()));
    wrong.take(times(since, until));
    if since.is_some() && params.hours.is_some() {
        let detail = "does not go with since: leave one of the two out";
        wrong.add(Problem::query("hours", detail).coded(FieldCode::Conflict));
    }
    let number = wrong.take(within(
        "hours",
        params.hours.unwrap_or(DEFAULT_HOURS),
        (1, HOURS_MAX),
    ));
    let limit = wrong.take(within(
        "limit",
        params.limit.unwrap_or(DEFAULT_LIMIT),
        (0, LIMIT_MAX),
    ));
    // What is out of bounds is not reckoned with.
    wrong.end()?;
    let hours = hours(since, until, app.now(), number)?;
    let counting = counted(&app, &filter, hours, (by, limit));
    let found = http_api::by(viewer.deadline, ("the dead letters", "counted"), counting).await?;
    Ok(Json(found))
}

/// The filter without its times, which say which hours are told of.
fn text_of(params: &TimelineParams) -> FilterText<'_> {
    FilterText {
        state: params.state.as_deref().or(Some("ALL")),
        since: None,
        until: None,
        ..words!(params)
    }
}

/// What those of a group have in common.
#[derive(Debug, Clone, Copy, Default)]
enum By {
    #[default]
    Cause,
    Endpoint,
    Reseller,
}

fn by(given: Option<&str>) -> Result<By, Problem> {
    match given {
        None | Some("cause") => Ok(By::Cause),
        Some("endpoint") => Ok(By::Endpoint),
        Some("reseller") => Ok(By::Reseller),
        Some(_) => {
            let detail = "must be cause, endpoint or reseller";
            Err(Problem::query("by", detail).coded(FieldCode::UnknownValue))
        }
    }
}

/// The hours from that of `since` on, or else so many, to the one that ends at `until` or has begun by then; to the present one without it.
fn hours(
    since: Option<DateTime<Utc>>,
    until: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
    number: u32,
) -> Result<Hours, Problem> {
    let last = until.map_or(now, |until| until - TimeDelta::nanoseconds(1));
    let Some(since) = since else {
        return Ok(last_hours(last, number));
    };
    let last = hour_of(last);
    let since = hour_of(since);
    let number = (last - since).num_hours() + 1;
    match usize::try_from(number) {
        Ok(number) if (1..=HOURS_MAX as usize).contains(&number) => Ok((since, number)),
        _ => {
            let detail = format!(
                "must be before until, which is now when missing, and at most {HOURS_MAX} hours before it"
            );
            Err(Problem::query("since", detail).coded(FieldCode::OutOfRange))
        }
    }
}

/// The last `number` hours, with the one that has begun.
pub(super) fn last_hours(now: DateTime<Utc>, number: u32) -> Hours {
    (
        hour_of(now) - TimeDelta::hours(i64::from(number) - 1),
        number as usize,
    )
}

async fn counted(
    app: &App,
    filter: &DeadLetterFilter,
    hours: Hours,
    (by, limit): (By, u32),
) -> Result<TimelineDocument, store::Error> {
    let kinds = match by {
        By::Cause => (DeadLettersBy::Cause, limit),
        By::Endpoint => (DeadLettersBy::Endpoint, limit),
        By::Reseller => (DeadLettersBy::Cause, 0),
    };
    // Those of pushes are of no reseller.
    let of_resellers = DeadLetterFilter {
        lane: filter.lane.or(Some(DeadLetterLane::Reseller)),
        ..filter.clone()
    };
    let filter = match by {
        By::Reseller => &of_resellers,
        By::Cause | By::Endpoint => filter,
    };
    let timeline = app.store.dead_letter_growth(filter, hours, kinds).await?;
    let mut document = TimelineDocument {
        since: hours.0,
        counts: timeline.counts,
        items: timeline.groups.into_iter().map(GroupTimeline::from).collect(),
        at_least: timeline.at_least,
    };
    if matches!(by, By::Reseller) && limit > 0 {
        let within = DeadLetterFilter {
            since: Some(hours.0),
            until: Some(hours.0 + TimeDelta::hours(hours.1 as i64)),
            ..filter.clone()
        };
        let found = app.store.dead_letters_by_reseller(&within, hours, limit).await?;
        document.at_least |= found.resellers.iter().any(|reseller| reseller.at_least);
        document.items = found.resellers.into_iter().map(GroupTimeline::from).collect();
    }
    Ok(document)
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
        // By endpoint none is told.
        let fingerprint = Some(hours.fingerprint).filter(|it| !it.is_empty());
        Self {
            lane: hours.lane.as_str(),
            kind: fingerprint.as_deref().map(|it| FailureClass::of(it).as_str()),
            fingerprint,
            target: Some(hours.target),
            reseller_id: None,
            counts: hours.counts,
        }
    }
}

impl From<ResellerDeadLetters> for GroupTimeline {
    fn from(found: ResellerDeadLetters) -> Self {
        Self {
            lane: DeadLetterLane::Reseller.as_str(),
            kind: None,
            fingerprint: None,
            target: None,
            reseller_id: Some(found.reseller),
            counts: found.hours,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("a time")
    }

    #[test]
    fn hours_are_whole_and_the_last_one_ends_with_the_time_or_has_begun_by_then() {
        let now = at("2026-11-23T14:00:00Z");
        assert_eq!(
            hours(None, None, now, 2).unwrap(),
            (at("2026-11-23T13:00:00Z"), 2)
        );
        assert_eq!(
            hours(None, Some(now), now, 2).unwrap(),
            (at("2026-11-23T12:00:00Z"), 2)
        );
        let of = |since: &str, until: &str| hours(Some(at(since)), Some(at(until)), now, 24).ok();
        assert_eq!(
            of("2026-11-23T12:59:59Z", "2026-11-23T14:00:00Z"),
            Some((at("2026-11-23T12:00:00Z"), 2))
        );
        assert_eq!(
            of("2026-11-23T12:00:00Z", "2026-11-23T14:00:01Z"),
            Some((at("2026-11-23T12:00:00Z"), 3))
        );
        assert_eq!(of("2026-11-23T15:00:00Z", "2026-11-23T14:00:00Z"), None);
        assert!(of("2026-10-26T14:00:00Z", "2026-11-23T14:00:00Z").is_some());
        assert_eq!(of("2026-10-26T13:00:00Z", "2026-11-23T14:00:00Z"), None);
    }
}

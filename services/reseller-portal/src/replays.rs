//! Replays: `/subscriptions/{id}/replays`. What a subscription missed since a time is sent again, by the retry worker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use domain::subscription::ReplayStatus;
use http::{HeaderName, StatusCode, header};
use http_api::paging::{self, List};
use http_api::{Draft, FieldCode, FieldProblem, Id, Ids, Problem, ProblemKind, ReadParams};
use serde::{Deserialize, Serialize};
use store::webhook::{Cancelled, Missed, NewReplay, ReplayRequested, ReplayView};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::{App, new_id};
use crate::problems::{self, REPLAY_COMPLETED, REPLAY_RUNNING};
use crate::request::{Reseller, Resender};

/// How a replay tells what was missed.
const STATUSES: [&str; 3] = ["FAILED", "GIVEN_UP", "MISSED"];
/// Most event types that a replay is of.
const EVENT_TYPES_MAX: usize = 50;
/// Most events that are examined for a count.
const EXAMINED_MAX: u32 = 10_000;

/// Which replays.
#[derive(Default, Deserialize, utoipa::IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReplayParams {
    /// Of this status: RUNNING, COMPLETED or CANCELLED; of any when missing.
    #[param(example = "RUNNING")]
    pub(crate) status: Option<String>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// A replay to be made.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schema(as = ReplayRequest)]
pub(crate) struct ReplayPayload {
    /// Of events that were accepted at this time or later, at most reseller.replay.maxAgeInDays ago.
    #[schema(value_type = DateTime<Utc>, required = true)]
    pub(crate) since: Option<DateTime<Utc>>,
    /// Of events that were accepted before this time; the present one when missing.
    pub(crate) until: Option<DateTime<Utc>>,
    /// Of these event types alone; of all that the subscription gets when missing.
    #[schema(max_items = 50, example = json!(["domain.created"]))]
    pub(crate) event_types: Option<Vec<String>>,
    /// Of what was missed in these ways alone: FAILED, GIVEN_UP, or MISSED for events of which there is no notification; of all when missing.
    #[schema(example = json!(["FAILED", "GIVEN_UP"]))]
    pub(crate) statuses: Option<Vec<String>>,
    /// Whether it is only counted what would be sent again, of the first 10,000 events of the time.
    pub(crate) dry_run: Option<bool>,
}

/// What a replay would send again.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ReplayPreview)]
pub(crate) struct ReplayPreviewDocument {
    /// Always true.
    pub(crate) dry_run: bool,
    /// From which time on.
    pub(crate) since: DateTime<Utc>,
    /// Before which time.
    pub(crate) until: DateTime<Utc>,
    /// Events that were examined.
    pub(crate) examined: u64,
    /// Whether these are all of the time; otherwise there are more than are counted.
    pub(crate) is_whole: bool,
    /// Notifications that would be made or made due again.
    pub(crate) count: u64,
    /// The same by how they were missed.
    #[schema(example = json!({"FAILED": 12, "MISSED": 30}))]
    pub(crate) by_status: BTreeMap<&'static str, u64>,
    /// The same by event type.
    #[schema(example = json!({"domain.created": 42}))]
    pub(crate) by_event_type: BTreeMap<String, u64>,
    /// Notifications that would be left alone because they were cancelled.
    pub(crate) cancelled: u64,
    /// Most notifications in a second.
    #[schema(example = 100)]
    pub(crate) per_second: u32,
}

/// A replay that was made, or the count that was asked for instead.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum ReplayAnswer {
    Made(ReplayDocument),
    Preview(ReplayPreviewDocument),
}

/// A replay.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Replay)]
pub(crate) struct ReplayDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// For which subscription.
    pub(crate) subscription_id: Uuid,
    /// Where it stands.
    pub(crate) status: ReplayStatus,
    /// Of events that were accepted at this time or later.
    pub(crate) since: DateTime<Utc>,
    /// Of events that were accepted before this time.
    pub(crate) until: DateTime<Utc>,
    /// Most notifications in a second.
    #[schema(example = 100)]
    pub(crate) per_second: u32,
    /// Of which event types alone; null for all.
    pub(crate) event_types: Option<Vec<String>>,
    /// Of what was missed in which ways alone; null for all.
    pub(crate) statuses: Option<Vec<String>>,
    /// Which part of the time from since to until is behind it, from 0 to 1.
    pub(crate) progress: f64,
    /// Events that were examined.
    pub(crate) examined: u64,
    /// Notifications that were made, or made due again.
    pub(crate) replayed: u64,
    /// Notifications that were left alone because they were cancelled.
    pub(crate) cancelled: u64,
    /// When it was asked for.
    pub(crate) created_at: DateTime<Utc>,
    /// When it last got on.
    pub(crate) updated_at: DateTime<Utc>,
    /// When it ended.
    pub(crate) finished_at: Option<DateTime<Utc>>,
    /// Which API key or person cancelled it, or `OPERATOR`: the operators of the platform; null when it was not.
    #[schema(example = "anna <user-17@acme>")]
    pub(crate) cancelled_by: Option<String>,
}

impl From<ReplayView> for ReplayDocument {
    fn from(view: ReplayView) -> Self {
        Self {
            progress: progress(&view),
            id: view.id,
            subscription_id: view.subscription,
            status: view.status,
            since: view.since,
            until: view.until,
            per_second: view.per_second,
            event_types: view.event_types,
            statuses: view.statuses,
            examined: view.examined,
            replayed: view.replayed,
            cancelled: view.cancelled,
            created_at: view.created_at,
            updated_at: view.updated_at,
            finished_at: view.finished_at,
            cancelled_by: view.cancelled_by,
        }
    }
}

/// By time: how many events lie ahead is not counted.
#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn progress(view: &ReplayView) -> f64 {
    if view.status == ReplayStatus::Completed {
        return 1.0;
    }
    let reached = view.cursor.and_then(|cursor| {
        // An event's identifier begins with its time in milliseconds.
        let millis = i64::try_from(cursor.as_u128() >> 80).ok()?;
        DateTime::from_timestamp_millis(millis)
    });
    let part = |from: DateTime<Utc>, to: DateTime<Utc>| (to - from).num_milliseconds() as f64;
    reached.map_or(0.0, |reached| {
        (part(view.since, reached) / part(view.since, view.until)).clamp(0.0, 1.0)
    })
}

/// Sends again what the subscription missed since a time.
///
/// Of each event that the filter lets through now: a notification that FAILED or was GIVEN_UP is sent again unless it was
/// cancelled, one that never was is made, and all others are left alone, as test events are. It is a job of its own and goes on at reseller.replay.perSecond.
#[utoipa::path(
    post, path = "/subscriptions/{id}/replays", tag = "replays", operation_id = "createReplay",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    request_body = ReplayPayload,
    responses(
        (status = 200, description = "It was only counted.", body = ReplayPreviewDocument),
        (status = 202, description = "It begins in a moment.", body = ReplayDocument,
            headers(("Location" = String, description = "Where the replay is: /subscriptions/{id}/replays/{replay}"))),
    )
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    reseller: Resender,
    Id(subscription): Id,
    Draft(payload, unread): Draft<ReplayPayload>,
) -> Result<(StatusCode, Option<[(HeaderName, String); 1]>, Json<ReplayAnswer>), Problem> {
    let now = app.now();
    let max_age = app.config.reseller.replay.max_age;
    let missed = missed(&payload);
    let checked = check(&payload, max_age, now);
    let ((since, until), missed) = unread.merge(checked.and_then(|time| Ok((time, missed?))))?;
    let new = NewReplay {
        id: new_id(now),
        subscription,
        since,
        until,
        per_second: app.config.reseller.replay.per_second,
        missed,
        created_at: now,
    };
    if payload.dry_run.unwrap_or_default() {
        let preview = preview(&app, &reseller, &new).await?;
        return Ok((StatusCode::OK, None, Json(ReplayAnswer::Preview(preview))));
    }
    let insert = app.store.insert_replay(&reseller.id, &new, reseller.act(now));
    match http_api::by(reseller.deadline, ("the replay", "stored"), insert).await? {
        ReplayRequested::Done => {}
        ReplayRequested::Running => {
            return Err(Problem::new(
                REPLAY_RUNNING,
                "another replay of the subscription is running",
            ));
        }
        ReplayRequested::Unknown => return Err(problems::no_subscription()),
    }
    let location = format!("/subscriptions/{subscription}/replays/{}", new.id);
    let stored = look_up(&app, &reseller, subscription, new.id).await?;
    Ok((
        StatusCode::ACCEPTED,
        Some([(header::LOCATION, location)]),
        Json(ReplayAnswer::Made(stored.into())),
    ))
}

async fn preview(app: &App, reseller: &Reseller, new: &NewReplay) -> Result<ReplayPreviewDocument, Problem> {
    let subscription = app.subscription(reseller, new.subscription).await?;
    let whose = (reseller.id.as_str(), subscription.event_types.as_slice());
    let count = app.store.count_replay(new, whose, EXAMINED_MAX);
    let counted = http_api::by(reseller.deadline, ("the replay", "counted"), count).await?;
    Ok(ReplayPreviewDocument {
        dry_run: true,
        since: new.since,
        until: new.until,
        examined: counted.examined,
        is_whole: counted.is_whole,
        count: counted.by_status.values().sum(),
        by_status: counted.by_status,
        by_event_type: counted.by_event_type,
        cancelled: counted.cancelled,
        per_second: new.per_second,
    })
}

/// Which part of what was missed is asked for.
fn missed(payload: &ReplayPayload) -> Result<Missed, Problem> {
    let mut errors = Vec::new();
    let event_types = payload.event_types.clone().unwrap_or_default();
    let are_types = event_types
        .iter()
        .all(|name| domain::subscription::is_event_type(name));
    if event_types.len() > EVENT_TYPES_MAX || !are_types {
        let detail = format!("must be at most {EVENT_TYPES_MAX} event types such as domain.created");
        errors.push(FieldProblem::new("eventTypes", detail).coded(FieldCode::WrongFormat));
    }
    let statuses = payload.statuses.clone().unwrap_or_default();
    if statuses.iter().any(|name| !STATUSES.contains(&name.as_str())) {
        let detail = format!("must be some of {}", STATUSES.join(", "));
        errors.push(FieldProblem::new("statuses", detail).coded(FieldCode::UnknownValue));
    }
    if errors.is_empty() {
        return Ok(Missed {
            event_types,
            statuses,
        });
    }
    Err(Problem::fields(errors))
}

/// The time that is asked for.
pub(crate) fn check(
    payload: &ReplayPayload,
    max_age: Duration,
    now: DateTime<Utc>,
) -> Result<(DateTime<Utc>, DateTime<Utc>), Problem> {
    let max_age = TimeDelta::from_std(max_age).unwrap_or(TimeDelta::MAX);
    let until = payload.until.unwrap_or(now);
    let mut errors = Vec::new();
    if until > now {
        errors.push(FieldProblem::new("until", "must not be in the future").coded(FieldCode::OutOfRange));
    }
    match payload.since {
        None => errors.push(
            FieldProblem::new("since", "must be a time such as 2026-11-21T12:00:00Z")
                .coded(FieldCode::Missing),
        ),
        Some(since) if now - since > max_age => {
            let detail = format!("must not be more than {} days ago", max_age.num_days());
            errors.push(FieldProblem::new("since", detail).coded(FieldCode::OutOfRange));
        }
        Some(since) if since >= until => {
            errors.push(FieldProblem::new("since", "must be before until").coded(FieldCode::Conflict));
        }
        Some(since) if errors.is_empty() => return Ok((since, until)),
        Some(_) => {}
    }
    Err(Problem::fields(errors))
}

/// Lists the replays of a subscription, the newest first.
#[utoipa::path(
    get, path = "/subscriptions/{id}/replays", tag = "replays", operation_id = "listReplays",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier."), ReplayParams),
    responses((status = 200, description = "A part of the list.", body = List<ReplayDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
    ReadParams(params, mut wrong): ReadParams<ReplayParams>,
) -> Result<Json<List<ReplayDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let before = wrong.take(paging::read_id(params.cursor.as_deref()));
    let status = wrong.with(params.status.as_deref().map(of_status).transpose())?;
    app.subscription(&reseller, id).await?;
    let list = app.store.list_replays(id, None, status, before, limit + 1);
    let found = http_api::by(reseller.deadline, ("the replays", "read"), list).await?;
    Ok(Json(List::by_id(
        found,
        limit,
        |view| view.id,
        ReplayDocument::from,
    )))
}

fn of_status(name: &str) -> Result<ReplayStatus, Problem> {
    name.parse().map_err(|_| {
        let known = ReplayStatus::ALL.map(ReplayStatus::as_str);
        Problem::query("status", format!("must be one of {}", known.join(", ")))
            .coded(FieldCode::UnknownValue)
    })
}

/// Shows a replay.
#[utoipa::path(
    get, path = "/subscriptions/{id}/replays/{replay}", tag = "replays", operation_id = "findReplay",
    security(("apiKey" = [])),
    params(
        ("id" = Uuid, Path, description = "The subscription's identifier."),
        ("replay" = Uuid, Path, description = "The replay's identifier."),
    ),
    responses((status = 200, description = "The replay.", body = ReplayDocument))
)]
pub(crate) async fn find(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Ids(subscription, replay): Ids,
) -> Result<Json<ReplayDocument>, Problem> {
    Ok(Json(look_up(&app, &reseller, subscription, replay).await?.into()))
}

/// Cancels a replay.
///
/// What it has made due already is still sent.
#[utoipa::path(
    delete, path = "/subscriptions/{id}/replays/{replay}", tag = "replays", operation_id = "cancelReplay",
    security(("apiKey" = [])),
    params(
        ("id" = Uuid, Path, description = "The subscription's identifier."),
        ("replay" = Uuid, Path, description = "The replay's identifier."),
    ),
    responses((status = 204, description = "It goes on no more."))
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    reseller: Resender,
    Ids(subscription, replay): Ids,
) -> Result<StatusCode, Problem> {
    app.subscription(&reseller, subscription).await?;
    let cancel = app
        .store
        .cancel_replay(subscription, replay, reseller.act(app.now()));
    match http_api::by(reseller.deadline, ("the replay", "cancelled"), cancel).await? {
        Cancelled::Done => Ok(StatusCode::NO_CONTENT),
        Cancelled::Completed => Err(Problem::new(
            REPLAY_COMPLETED,
            "the replay has been through already",
        )),
        Cancelled::Unknown => Err(no_replay()),
    }
}

async fn look_up(
    app: &App,
    reseller: &Reseller,
    subscription: Uuid,
    replay: Uuid,
) -> Result<ReplayView, Problem> {
    app.subscription(reseller, subscription).await?;
    let list = app.store.list_replays(subscription, Some(replay), None, None, 1);
    let mut found = http_api::by(reseller.deadline, ("the replay", "read"), list).await?;
    found.pop().ok_or_else(no_replay)
}

fn no_replay() -> Problem {
    Problem::new(ProblemKind::NOT_FOUND, "no replay has this identifier")
}

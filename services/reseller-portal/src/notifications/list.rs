//! `GET /subscriptions/{id}/notifications` and `GET /subscriptions/{id}/scheduled`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use domain::notification::{NotificationId, NotificationStatus};
use domain::reason::NotificationReason;
use http_api::paging::{self, List};
use http_api::{FieldCode, FieldProblem, Id, Problem, ReadParams, WrongQuery, words};
use serde::Deserialize;
use store::webhook::{LineFilter, NotificationFilter, NotificationRow};
use uuid::Uuid;

use super::RowDocument;
use crate::app::App;
use crate::request::Reseller;

/// How far back the list goes.
pub(crate) const SHOWN: TimeDelta = TimeDelta::days(7);
/// Most event types that can be asked for at once.
const EVENT_TYPES_MAX: usize = 50;

/// Which notifications.
#[derive(Default, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct NotificationParams {
    /// Of these statuses, separated by commas; of any when missing.
    #[param(example = "FAILED,GIVEN_UP")]
    pub(crate) status: Option<String>,
    /// Of these event types of the catalogue, retired ones among them, separated by commas; of any when missing. Prefixes are not taken.
    #[param(example = "domain.created")]
    pub(crate) event_type: Option<String>,
    /// Of this event: what its caller called it (`eventId`), or its identifier; however long ago it was. The other filters are applied as well.
    #[param(example = "order-4711")]
    pub(crate) event_id: Option<String>,
    /// Of events that were accepted at this time or later; never of more than 7 days ago.
    pub(crate) since: Option<DateTime<Utc>>,
    /// Of events that were accepted before this time.
    pub(crate) until: Option<DateTime<Utc>>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// Lists the notifications of the last 7 days, the newest event first.
#[utoipa::path(
    get, path = "/subscriptions/{id}/notifications", tag = "notifications", operation_id = "listNotifications",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier."), NotificationParams),
    responses((status = 200, description = "A part of the list.", body = List<RowDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
    ReadParams(params, wrong): ReadParams<NotificationParams>,
) -> Result<Json<List<RowDocument>>, Problem> {
    let filter = wrong.with(filter(id, &params, app.now()))?;
    app.subscription(&reseller, id).await?;
    app.require_event_types(&reseller, &filter.event_types).await?;
    if let Some(event) = &params.event_id {
        let found = of_event(&app, &reseller, (id, event));
        let row = http_api::by(reseller.deadline, ("the notifications", "read"), found).await?;
        let row = row.filter(|row| is_asked(row, &filter, &params));
        let held = app.held_back(&reseller, id).await?;
        let items = row.into_iter().map(|row| RowDocument::of(row, held));
        return Ok(Json(List::new(items.collect(), None)));
    }
    let list = app.store.list_notifications(&filter);
    let page = http_api::by(reseller.deadline, ("the notifications", "read"), list).await?;
    let held = app.held_back(&reseller, id).await?;
    let items = page
        .items
        .into_iter()
        .map(|row| RowDocument::of(row, held))
        .collect();
    Ok(Json(List::new(items, page.next.map(paging::write_id))))
}

/// Whether what became of an event is what is asked for besides. It is found however long ago it was, unless a time is named.
fn is_asked(row: &NotificationRow, filter: &NotificationFilter, params: &NotificationParams) -> bool {
    (filter.statuses.is_empty() || filter.statuses.contains(&row.status))
        && (filter.event_types.is_empty() || filter.event_types.contains(&row.event_type))
        && params.since.is_none_or(|since| row.accepted_at >= since)
        && params.until.is_none_or(|until| row.accepted_at < until)
}

/// What became of an event for a subscription of the reseller.
async fn of_event(
    app: &App,
    reseller: &Reseller,
    (subscription, event): (Uuid, &str),
) -> Result<Option<NotificationRow>, store::Error> {
    let known = app.store.event_of_key(&reseller.id, event).await?;
    let Some(event) = known.or_else(|| event.parse().ok()) else {
        return Ok(None);
    };
    let id = NotificationId::of(event, subscription);
    let found = app.store.find_notification(&reseller.id, id).await?;
    Ok(found.map(|found| found.row))
}

pub(crate) fn filter(
    subscription: Uuid,
    params: &NotificationParams,
    now: DateTime<Utc>,
) -> Result<NotificationFilter, Problem> {
    let earliest = now - SHOWN;
    let mut wrong = WrongQuery::default();
    let filter = NotificationFilter {
        subscription,
        statuses: wrong.take(statuses(params.status.as_deref())),
        event_types: wrong.take(event_types(params.event_type.as_deref())),
        since: params.since.map_or(earliest, |since| since.max(earliest)),
        // The clock of the process that took an event in may be a little ahead of ours.
        until: params.until.unwrap_or(now + TimeDelta::days(1)),
        before: wrong.take(paging::read_id(params.cursor.as_deref())),
        limit: wrong.take(paging::limit(params.limit)),
    };
    wrong.with(Ok(filter))
}

pub(super) fn statuses(text: Option<&str>) -> Result<Vec<NotificationStatus>, Problem> {
    words::some_of(
        "status",
        text,
        &NotificationStatus::ALL.map(NotificationStatus::as_str),
    )
}

pub(super) fn event_types(text: Option<&str>) -> Result<Vec<String>, Problem> {
    let names: Vec<String> = words::listed(text).map(str::to_owned).collect();
    if names.len() > EVENT_TYPES_MAX {
        return Err(Problem::parameter(
            FieldProblem::new("eventType", format!("must be at most {EVENT_TYPES_MAX} names"))
                .at_most(EVENT_TYPES_MAX),
        ));
    }
    let is_none = |name: &&String| !domain::subscription::is_event_type(name);
    let Some(wrong) = names.iter().find(is_none) else {
        return Ok(names);
    };
    let detail = if wrong.ends_with('*') {
        "must be whole event types such as domain.created, with commas between them: prefixes such as domain.* are not taken here"
    } else {
        "must be event types such as domain.created"
    };
    Err(Problem::query("eventType", detail).coded(FieldCode::WrongFormat))
}

/// Why something can be in line.
const IN_LINE_FOR: [&str; 3] = ["QUOTA", "RATE", "POSTPONED"];

/// What of the line.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ScheduledParams {
    /// For these reasons, separated by commas: QUOTA, RATE, POSTPONED; for any when missing.
    #[param(example = "QUOTA")]
    pub(crate) reason: Option<String>,
    /// Of these event types of the catalogue, retired ones among them, separated by commas; of any when missing. Prefixes are not taken.
    #[param(example = "domain.created")]
    pub(crate) event_type: Option<String>,
    /// Whose turns come on this day, by the limits of this moment: a `day` of the summary, whose 31st day stands for all that follow.
    #[param(example = "2026-11-22")]
    pub(crate) day: Option<NaiveDate>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

fn reasons(text: Option<&str>) -> Result<Vec<NotificationReason>, Problem> {
    words::some_of("reason", text, &IN_LINE_FOR)
}

/// Lists what waits in line for quota or for the requests per second, oldest first.
///
/// What a pause alone holds back is not in line: `GET /subscriptions/{id}/notifications?status=PENDING,IN_MEMORY,RETRY,SCHEDULED` lists it, with `pausedBy`.
#[utoipa::path(
    get, path = "/subscriptions/{id}/scheduled", tag = "notifications", operation_id = "listScheduled",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier."), ScheduledParams),
    responses((status = 200, description = "A part of the list.", body = List<RowDocument>))
)]
pub(crate) async fn scheduled(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
    ReadParams(params, mut wrong): ReadParams<ScheduledParams>,
) -> Result<Json<List<RowDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let after = wrong.take(paging::read_at(params.cursor.as_deref()));
    let filter = LineFilter {
        reasons: wrong.take(reasons(params.reason.as_deref())),
        event_types: wrong.take(event_types(params.event_type.as_deref())),
        day: params.day,
    };
    wrong.end()?;
    app.subscription(&reseller, id).await?;
    app.require_event_types(&reseller, &filter.event_types).await?;
    let list = app.store.list_scheduled(id, &filter, after, limit);
    let page = http_api::by(reseller.deadline, ("the notifications", "read"), list).await?;
    let held = app.held_back(&reseller, id).await?;
    let items = page
        .items
        .into_iter()
        .map(|row| RowDocument::of(row, held))
        .collect();
    Ok(Json(List::new(items, page.next.map(paging::write_at))))
}

/// The first that are tried again, soonest first.
pub(crate) async fn retries(
    app: &App,
    reseller: &Reseller,
    id: Uuid,
    limit: u32,
) -> Result<Vec<RowDocument>, Problem> {
    app.subscription(reseller, id).await?;
    let list = app.store.list_retries(id, limit);
    let rows = http_api::by(reseller.deadline, ("the notifications", "read"), list).await?;
    let held = app.held_back(reseller, id).await?;
    Ok(rows.into_iter().map(|row| RowDocument::of(row, held)).collect())
}

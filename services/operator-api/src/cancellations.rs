//! `POST /cancellations`: cancelling what waits by a filter, so many at once.
//!
//! What matches is found along the lists of what waits, and cancelled in one transaction with one entry in the audit log. It is bounded instead of
//! a job: what waits moves by itself, and a job about it would race with the lanes for as long as it runs. Asked again, it goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use chrono::{DateTime, Utc};
use domain::push::PushStatus;
use http_api::{FieldCode, FieldProblem, Payload, Problem};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::push::PushFilter;
use store::webhook::NotificationSearch;
use store::{CancelledMany, Lane, ToCancel};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::examined::not_indexed;
use crate::note;
use crate::notifications::{self, NotificationParams};
use crate::pushes::{self, PushParams};
use crate::request::Operator;

/// From how many on a person has to have shown lately who it is.
const WITHOUT_ASKING: usize = 1_000;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(create))
}

/// What is to be cancelled: what waits of a lane and matches. What is missing restricts nothing; one thing has to restrict.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "an object"
)]
#[schema(as = CancellationFilter)]
pub(crate) struct WaitingFilter {
    /// In this status: SCHEDULED, PENDING, IN_MEMORY or RETRY.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "SCHEDULED")]
    pub(crate) status: Option<String>,
    /// Pushes of this message prototype.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prototype: Option<String>,
    /// Pushes for devices of this platform: IOS or ANDROID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) platform: Option<String>,
    /// Notifications of this reseller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reseller: Option<String>,
    /// Notifications of this subscription.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subscription: Option<Uuid>,
    /// Notifications of events of this type.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "domain.created")]
    pub(crate) event_type: Option<String>,
    /// Accepted at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<DateTime<Utc>>,
    /// Accepted before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<DateTime<Utc>>,
}

/// What waits and is not to be sent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = NewCancellation)]
pub(crate) struct CancellationPayload {
    /// `push` or `reseller`.
    #[schema(value_type = String, example = "push")]
    pub(crate) lane: Option<String>,
    /// Which of it.
    #[serde(default)]
    pub(crate) filter: WaitingFilter,
    /// Why; at most 2,000 bytes. Needed unless it is a dry run.
    #[schema(max_length = 2_000, example = "The campaign was called off.")]
    pub(crate) note: Option<String>,
    /// Count, and do nothing.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// What was cancelled.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Cancellation)]
pub(crate) struct CancellationDocument {
    /// How many were found that wait and match; at most 5,000.
    #[schema(example = 412)]
    pub(crate) matching: u64,
    /// The same by status.
    #[schema(value_type = BTreeMap<String, u64>, example = json!({"SCHEDULED": 400, "RETRY": 12}))]
    pub(crate) by_status: BTreeMap<&'static str, u64>,
    /// When the first of them was accepted.
    pub(crate) oldest: Option<DateTime<Utc>>,
    /// When the last of them was accepted. With an `until` after that, nothing is cancelled that came since it was counted.
    pub(crate) newest: Option<DateTime<Utc>>,
    /// Whether more may match: ask again for those. Where none was found, not all were looked at: restrict it further.
    pub(crate) more: bool,
    /// How many were cancelled. The others were being sent, or had ended, when it came to them; none in a dry run.
    #[schema(example = 411)]
    pub(crate) cancelled: u64,
    /// How many of these are notifications that had been delivered and were to be sent again: they are SENT as before.
    #[schema(example = 3)]
    pub(crate) delivered: u64,
}

/// Cancels what waits and matches, at most 5,000 at once. It ends as GIVEN_UP with the reason CANCELLED.
///
/// That is final: no replay and no resend sends it. Dead letters are discarded from the beginning, with the note. What had been delivered and was to
/// be sent again is SENT as before and has no dead letter. With `dryRun` nothing is changed.
#[utoipa::path(
    post, path = "/cancellations", tag = "cancel", operation_id = "cancelWaiting", security(("apiKey" = [])),
    request_body(content = CancellationPayload, example = json!({
        "lane": "push", "filter": {"prototype": "campaign-2026-11", "status": "SCHEDULED"}, "note": "the campaign was called off"
    })),
    responses((status = 200, description = "What was cancelled, or would be.", body = CancellationDocument))
)]
pub(crate) async fn create(
    operator: Operator,
    Payload(payload): Payload<CancellationPayload>,
) -> Result<Json<CancellationDocument>, Problem> {
    let note = match payload.dry_run {
        true => Ok(None),
        false => note::required(payload.note.as_deref()).map(Some),
    };
    let (note, lane) = note::with(note, check(&payload))?;
    let finding = Box::pin(find(&operator.app, lane, &payload.filter));
    let found = http_api::by(operator.deadline, ("what waits", "read"), finding).await??;
    let mut many = CancelledMany::default();
    if !payload.dry_run && !found.ids.is_empty() {
        if found.ids.len() > WITHOUT_ASKING {
            operator.require_recent()?;
        }
        let (act, store) = (operator.act(note), &operator.app.store);
        let whose = notifications_of(&payload.filter)?.of;
        // What moved on since it was found may be in another status than the one that was asked for.
        let (chosen, status) = (json!(payload.filter), payload.filter.status.as_deref());
        let cancelling = async {
            match lane {
                Lane::Push => {
                    let cancelling = store.cancel_pushes(&found.ids, status, chosen, act);
                    cancelling.await.map(|cancelled| CancelledMany {
                        cancelled,
                        delivered: 0,
                    })
                }
                Lane::Reseller => {
                    let which = (&whose, status);
                    store.cancel_notifications(&found.ids, which, chosen, act).await
                }
            }
        };
        many = http_api::by(operator.deadline, ("what waits", "cancelled"), cancelling).await?;
    }
    Ok(Json(CancellationDocument {
        matching: found.ids.len() as u64,
        by_status: found.by_status,
        oldest: found.oldest,
        newest: found.newest,
        more: found.more,
        cancelled: many.cancelled,
        delivered: many.delivered,
    }))
}

/// The lane that is meant, when all that is said of it can be.
fn check(payload: &CancellationPayload) -> Result<Lane, Problem> {
    let mut wrong = Vec::new();
    let filter = &payload.filter;
    let lane = payload.lane.as_deref().and_then(|lane| lane.parse::<Lane>().ok());
    if lane.is_none() {
        wrong.push(FieldProblem::new("lane", "must be push or reseller").coded(FieldCode::UnknownValue));
    }
    let of_pushes = [
        ("prototype", filter.prototype.is_some()),
        ("platform", filter.platform.is_some()),
    ];
    let of_notifications = [
        ("reseller", filter.reseller.is_some()),
        ("subscription", filter.subscription.is_some()),
        ("eventType", filter.event_type.is_some()),
    ];
    let others = match lane {
        Some(Lane::Push) => &of_notifications[..],
        Some(Lane::Reseller) => &of_pushes,
        None => &[],
    };
    for (name, _) in others.iter().filter(|(_, is_given)| *is_given) {
        let detail = "is of the other lane: leave it out, or give that lane";
        wrong.push(FieldProblem::new(format!("filter.{name}"), detail).coded(FieldCode::Conflict));
    }
    let waiting = PushStatus::WAITING.map(PushStatus::as_str);
    if filter
        .status
        .as_deref()
        .is_some_and(|status| !waiting.contains(&status))
    {
        let detail = format!("must be one of {}: nothing else waits", waiting.join(", "));
        wrong.push(FieldProblem::new("filter.status", detail).coded(FieldCode::UnknownValue));
    }
    if json!(filter).as_object().is_none_or(serde_json::Map::is_empty) {
        let detail =
            "must say something: of a whole lane nothing is cancelled by mistake; `since` alone would do";
        wrong.push(FieldProblem::new("filter", detail).coded(FieldCode::Missing));
    }
    match lane {
        Some(lane) if wrong.is_empty() => Ok(lane),
        _ => Err(Problem::fields(wrong)),
    }
}

/// What is wrong with a word of the filter, as the lists say it, is wrong with a member of the body.
fn in_body(problem: &Problem) -> Problem {
    let wrong = problem.errors().iter().map(|wrong| {
        let field = format!("filter.{}", wrong.field);
        FieldProblem {
            field: field.into(),
            ..wrong.clone()
        }
    });
    Problem::fields(wrong.collect())
}

/// Finds what waits and matches, as far as it is cancelled at once.
async fn find(
    app: &App,
    lane: Lane,
    filter: &WaitingFilter,
) -> Result<Result<ToCancel, Problem>, store::Error> {
    Ok(match lane {
        Lane::Push => match pushes_of(filter) {
            Ok(filter) => app.store.pushes_to_cancel(&filter).await?.ok_or_else(not_indexed),
            Err(problem) => Err(in_body(&problem)),
        },
        Lane::Reseller => match notifications_of(filter) {
            Ok(search) => Ok(app.store.notifications_to_cancel(&search).await?),
            Err(problem) => Err(in_body(&problem)),
        },
    })
}

fn pushes_of(filter: &WaitingFilter) -> Result<PushFilter, Problem> {
    pushes::filter(&PushParams {
        device: None,
        prototype: filter.prototype.clone(),
        platform: filter.platform.clone(),
        status: filter.status.clone(),
        reason: None,
        since: filter.since,
        until: filter.until,
        ended_since: None,
        ended_until: None,
        late_by_seconds: None,
        limit: None,
        cursor: None,
    })
}

fn notifications_of(filter: &WaitingFilter) -> Result<NotificationSearch, Problem> {
    notifications::read(&NotificationParams {
        reseller: filter.reseller.clone(),
        subscription: filter.subscription,
        status: filter.status.clone(),
        event_type: filter.event_type.clone(),
        since: filter.since,
        until: filter.until,
        ..NotificationParams::default()
    })
}

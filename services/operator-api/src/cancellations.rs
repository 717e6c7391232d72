//! `POST /cancellations`: cancelling what waits by a filter, so many at once.
//!
//! What matches is found along the lists of what waits, and cancelled in one transaction with one entry in the audit log. It is bounded instead of
//! a job (ADR 0082): what waits moves by itself, and a job about it would race with the lanes for as long as it runs. Asked again, it goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use chrono::{DateTime, Utc};
use domain::push::PushStatus;
use domain::reason::{NotificationReason, WAITS_FOR};
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
    /// Notifications of subscriptions with this in their URL as it is now; refused where more than 1,000 have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "acme.example")]
    pub(crate) url: Option<String>,
    /// Notifications of events of this type.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "domain.created")]
    pub(crate) event_type: Option<String>,
    /// Told with this reason in the lists of what waits: QUOTA, RATE, POSTPONED, BUSY, WITHHELD, PAUSED, UNVERIFIED, BACKLOG, RESENT or REPLAYED
    /// of notifications, REPLAYED of pushes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "PAUSED")]
    pub(crate) reason: Option<String>,
    /// Notifications of which the endpoint answered the last attempt with this status code, or with one of a class, such as 5xx.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "503")]
    pub(crate) code: Option<String>,
    /// Notifications of which the last attempt failed in this way: HTTP, TIMEOUT, DNS, TLS, CONNECT, PROTOCOL, EGRESS or OTHER.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "TIMEOUT")]
    pub(crate) error: Option<String>,
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
    /// How many were found that wait and match; at most 5,000, which are those that are cancelled.
    #[schema(example = 412)]
    pub(crate) matching: u64,
    /// How many more were found after these, for which to ask again; up to 20,000 are found in all, or as many as in two seconds.
    #[schema(example = 0)]
    pub(crate) left: u64,
    /// Whether not all were looked at: then more than `left` may match.
    pub(crate) left_at_least: bool,
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
/// Of more than that `more` is true: the same request, asked again, goes on with those that are left, and each has its own entry in the audit log.
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
    let found = find(&operator, lane, &payload.filter).await?;
    let mut many = CancelledMany::default();
    if !payload.dry_run && !found.ids.is_empty() {
        if found.ids.len() > WITHOUT_ASKING {
            operator.require_recent()?;
        }
        let (act, store) = (operator.act(note), &operator.app.store);
        // A URL may be of several resellers: then it is about the lane, and says how many were whose.
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
        left: found.left,
        left_at_least: found.at_least,
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
        ("url", filter.url.is_some()),
        ("eventType", filter.event_type.is_some()),
        ("code", filter.code.is_some()),
        ("error", filter.error.is_some()),
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
    if let (Some(lane), Some(reason)) = (lane, filter.reason.as_deref()) {
        let reasons = reasons_of(lane);
        if !reasons.contains(&reason) {
            let detail = format!(
                "must be one of {}: nothing waits for another one",
                reasons.join(", ")
            );
            wrong.push(FieldProblem::new("filter.reason", detail).coded(FieldCode::UnknownValue));
        }
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

/// The reasons that are told of what waits in a lane.
pub(crate) fn reasons_of(lane: Lane) -> &'static [&'static str] {
    match lane {
        Lane::Push => &["REPLAYED"],
        Lane::Reseller => &WAITS_FOR,
    }
}

/// What is wrong with a word of the filter, as the lists say it, is wrong with a member of the body.
fn in_body(problem: Problem) -> Problem {
    if problem.errors().is_empty() {
        return problem;
    }
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
async fn find(operator: &Operator, lane: Lane, filter: &WaitingFilter) -> Result<ToCancel, Problem> {
    let (app, deadline) = (&operator.app, operator.deadline);
    let what = ("what waits", "read");
    match lane {
        Lane::Push => {
            let filter = pushes_of(filter).map_err(in_body)?;
            let finding = Box::pin(app.store.pushes_to_cancel(&filter));
            let found = http_api::by(deadline, what, finding).await?;
            found.ok_or_else(not_indexed)
        }
        Lane::Reseller => {
            let mut search = notifications_of(filter).map_err(in_body)?;
            if let Some(url) = &filter.url {
                let which = (url.as_str(), filter.reseller.as_deref());
                let with_url = notifications::with_url(app, operator.viewer(), which).await;
                search.of = with_url.map_err(in_body)?;
            }
            // Each text is a reason, and those that are known have been told from others.
            let reason: Option<NotificationReason> =
                filter.reason.as_deref().and_then(|name| name.parse().ok());
            let finding = Box::pin(app.store.notifications_to_cancel(&search, reason.as_ref()));
            http_api::by(deadline, what, finding).await
        }
    }
}

fn pushes_of(filter: &WaitingFilter) -> Result<PushFilter, Problem> {
    pushes::filter(&PushParams {
        device: None,
        prototype: filter.prototype.clone(),
        platform: filter.platform.clone(),
        status: filter.status.clone(),
        reason: filter.reason.clone(),
        since: filter.since,
        until: filter.until,
        ended_since: None,
        ended_until: None,
        late_by_seconds: None,
        limit: None,
        cursor: None,
    })
}

/// What the filter says, but for `url`, which is to be looked up, and for the reason, which is told by more than what is stored.
fn notifications_of(filter: &WaitingFilter) -> Result<NotificationSearch, Problem> {
    notifications::read(&NotificationParams {
        reseller: filter.reseller.clone(),
        subscription: filter.subscription,
        url: filter.url.clone(),
        status: filter.status.clone(),
        event_type: filter.event_type.clone(),
        code: filter.code.clone(),
        error: filter.error.clone(),
        since: filter.since,
        until: filter.until,
        ..NotificationParams::default()
    })
}

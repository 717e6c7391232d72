//! `POST /cancellations`: cancelling what waits by a filter, so many at once.
//!
//! What matches is found along the lists of what waits, and cancelled in one transaction with one entry in the audit log. It is bounded instead of
//! a job: what waits moves by itself, and a job about it would race with the lanes for as long as it runs. Asked again, it goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use chrono::{DateTime, Utc};
use domain::push::PushStatus;
use http_api::{FieldProblem, Payload, Problem};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::Lane;
use store::webhook::DueCursor;
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

/// Most that are cancelled at once.
const CANCELLED_MAX: usize = 5_000;
/// Most parts of lists that are looked through for them, of 10,000 each.
const PARTS_MAX: usize = 20;
/// How many of a list are asked for at once.
const PART: u32 = 1_000;
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
    /// Whether more may match: ask again for those.
    pub(crate) more: bool,
    /// How many were cancelled. The others were being sent, or had ended, when it came to them; none in a dry run.
    #[schema(example = 411)]
    pub(crate) cancelled: u64,
}

/// What was found.
#[derive(Default)]
struct Found {
    ids: Vec<Uuid>,
    by_status: BTreeMap<&'static str, u64>,
    oldest: Option<DateTime<Utc>>,
    more: bool,
}

impl Found {
    fn add(&mut self, id: Uuid, status: &'static str, accepted_at: DateTime<Utc>) {
        if self.ids.len() >= CANCELLED_MAX {
            return;
        }
        self.ids.push(id);
        *self.by_status.entry(status).or_default() += 1;
        self.oldest = Some(self.oldest.map_or(accepted_at, |oldest| oldest.min(accepted_at)));
    }
}

/// Cancels what waits and matches, at most 5,000 at once. It ends as GIVEN_UP with the reason CANCELLED.
///
/// That is final: no replay and no resend sends it. Dead letters are discarded from the beginning, with the note. With `dryRun` nothing is changed.
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
    let lane = check(&payload)?;
    let note = match payload.dry_run {
        true => None,
        false => Some(note::required(payload.note.as_deref())?),
    };
    let finding = Box::pin(find(&operator.app, lane, &payload.filter));
    let found = http_api::by(operator.deadline, ("what waits", "read"), finding).await??;
    let mut cancelled = 0;
    if !payload.dry_run && !found.ids.is_empty() {
        if found.ids.len() > WITHOUT_ASKING {
            operator.require_recent()?;
        }
        let (act, store) = (operator.act(note), &operator.app.store);
        // What moved on since it was found may be in another status than the one that was asked for.
        let (chosen, status) = (json!(payload.filter), payload.filter.status.as_deref());
        let cancelling = async {
            match lane {
                Lane::Push => store.cancel_pushes(&found.ids, status, chosen, act).await,
                Lane::Reseller => store.cancel_notifications(&found.ids, status, chosen, act).await,
            }
        };
        cancelled = http_api::by(operator.deadline, ("what waits", "cancelled"), cancelling).await?;
    }
    Ok(Json(CancellationDocument {
        matching: found.ids.len() as u64,
        by_status: found.by_status,
        oldest: found.oldest,
        more: found.more,
        cancelled,
    }))
}

/// The lane that is meant, when all that is said of it can be.
fn check(payload: &CancellationPayload) -> Result<Lane, Problem> {
    let mut wrong = Vec::new();
    let filter = &payload.filter;
    let Some(Ok(lane)) = payload.lane.as_deref().map(str::parse::<Lane>) else {
        let wrong = FieldProblem::new("lane", "must be push or reseller");
        return Err(Problem::fields(vec![wrong]));
    };
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
        Lane::Push => &of_notifications[..],
        Lane::Reseller => &of_pushes,
    };
    for (name, _) in others.iter().filter(|(_, is_given)| *is_given) {
        let detail = "is of the other lane: leave it out, or give that lane";
        wrong.push(FieldProblem::new(format!("filter.{name}"), detail));
    }
    let waiting = WAITING.map(PushStatus::as_str);
    if filter
        .status
        .as_deref()
        .is_some_and(|status| !waiting.contains(&status))
    {
        let detail = format!("must be one of {}: nothing else waits", waiting.join(", "));
        wrong.push(FieldProblem::new("filter.status", detail));
    }
    if json!(filter).as_object().is_none_or(serde_json::Map::is_empty) {
        let detail =
            "must say something: of a whole lane nothing is cancelled by mistake; `since` alone would do";
        wrong.push(FieldProblem::new("filter", detail));
    }
    if wrong.is_empty() {
        Ok(lane)
    } else {
        Err(Problem::fields(wrong))
    }
}

/// What waits, in the order in which it is looked through: both lanes call it the same.
const WAITING: [PushStatus; 4] = [
    PushStatus::Scheduled,
    PushStatus::Retry,
    PushStatus::Pending,
    PushStatus::InMemory,
];

/// What is wrong with a word of the filter, as the lists say it, is wrong with a member of the body.
fn in_body(problem: &Problem) -> Problem {
    let wrong = problem.errors().iter().map(|wrong| {
        let field = format!("filter.{}", wrong.field);
        FieldProblem::new(field, wrong.detail.clone())
    });
    Problem::fields(wrong.collect())
}

/// Finds what waits and matches, as far as it is cancelled at once.
async fn find(app: &App, lane: Lane, filter: &WaitingFilter) -> Result<Result<Found, Problem>, store::Error> {
    let mut found = Found::default();
    let mut parts = 0;
    for status in WAITING.map(PushStatus::as_str) {
        if filter.status.as_deref().is_some_and(|wanted| wanted != status) {
            continue;
        }
        let (mut after, mut goes_on) = (None, true);
        while goes_on && !found.more {
            let part = match lane {
                Lane::Push => pushes_of(app, filter, status, after, &mut found).await?,
                Lane::Reseller => notifications_of(app, filter, status, after, &mut found).await?,
            };
            after = match part {
                Ok(next) => next,
                Err(problem) => return Ok(Err(problem)),
            };
            goes_on = after.is_some();
            parts += 1;
            found.more = found.ids.len() >= CANCELLED_MAX || goes_on && parts >= PARTS_MAX;
        }
    }
    Ok(Ok(found))
}

/// Where a list goes on, or why there is none.
type Next = Result<Option<DueCursor>, Problem>;

async fn pushes_of(
    app: &App,
    filter: &WaitingFilter,
    status: &'static str,
    after: Option<DueCursor>,
    found: &mut Found,
) -> Result<Next, store::Error> {
    let params = PushParams {
        device: None,
        prototype: filter.prototype.clone(),
        platform: filter.platform.clone(),
        status: Some(status.to_owned()),
        reason: None,
        since: filter.since,
        until: filter.until,
        limit: None,
        cursor: None,
    };
    let listed = match pushes::filter(&params) {
        Ok(filter) => app.store.list_pushes(&filter, after, PART).await?,
        Err(problem) => return Ok(Err(in_body(&problem))),
    };
    let Some(part) = listed else {
        return Ok(Err(not_indexed()));
    };
    for push in part.items.iter().filter(|push| !push.claimed) {
        found.add(push.id.uuid(), status, push.created_at);
    }
    Ok(Ok(part.next))
}

async fn notifications_of(
    app: &App,
    filter: &WaitingFilter,
    status: &'static str,
    after: Option<DueCursor>,
    found: &mut Found,
) -> Result<Next, store::Error> {
    let params = NotificationParams {
        reseller: filter.reseller.clone(),
        subscription: filter.subscription,
        status: Some(status.to_owned()),
        event_type: filter.event_type.clone(),
        since: filter.since,
        until: filter.until,
        ..NotificationParams::default()
    };
    let search = match notifications::read(&params) {
        Ok(search) => search,
        Err(problem) => return Ok(Err(in_body(&problem))),
    };
    let part = app.store.search_notifications(&search, after, PART).await?;
    for notification in &part.items {
        found.add(notification.id.uuid(), status, notification.accepted_at);
    }
    Ok(Ok(part.next))
}

//! Requests of resellers for a higher quota, which administrators decide.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::Days;
use domain::quota::day_of;
use domain::subscription::QuotaRequestStatus;
use http_api::paging::{self, List};
use http_api::{FieldCode, Id, Payload, Problem, ProblemKind, ReadParams};
use serde::{Deserialize, Serialize};
use store::webhook::{Decided, Decision, PresentLimits, QuotaRequestView};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::dead_letter_jobs::between;
use crate::note;
use crate::request::{Administrator, Viewer};
use crate::subscriptions::REQUESTS_PER_SECOND_MAX;

/// Greatest daily quota.
pub(crate) const QUOTA_MAX: u32 = 1_000_000_000;
/// Of how many days, the last ones that have ended, what is sent on one is the mean.
const SENT_DAYS: u64 = 7;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(approve))
        .routes(routes!(deny))
}

/// Which quota requests.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct QuotaRequestParams {
    /// Of this status: REQUESTED, APPROVED or DENIED; of any when missing.
    pub(crate) status: Option<String>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// A quota request, and what a grant would be of all sends.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuotaRequestListed)]
pub(crate) struct ListedDocument {
    #[serde(flatten)]
    pub(crate) request: QuotaRequestView,
    /// What the daily quota that is asked for is in percent of the notifications that are sent to all resellers on a day: the mean of the last
    /// seven days that have ended, without those on which none was. Null of a request that is decided or asks for no daily quota, and
    /// while none was sent on these days.
    #[schema(example = 12)]
    pub(crate) percent_of_sends: Option<u64>,
    /// What the subscription has now, and has used today; null of a request that is decided.
    pub(crate) present: Option<PresentLimits>,
}

impl ListedDocument {
    /// Beside what is sent on a day, and what subscriptions have.
    fn new(
        request: QuotaRequestView,
        sent_a_day: Option<u64>,
        present: &HashMap<Uuid, PresentLimits>,
    ) -> Self {
        let sent = sent_a_day.filter(|sent| *sent > 0 && asks(&request));
        Self {
            percent_of_sends: sent.map(|sent| (u64::from(request.requested) * 100 + sent / 2) / sent),
            present: present
                .get(&request.subscription)
                .copied()
                .filter(|_| is_open(&request)),
            request,
        }
    }
}

/// Whether it waits for the decision about a daily quota.
fn asks(request: &QuotaRequestView) -> bool {
    request.asks_daily && is_open(request)
}

fn is_open(request: &QuotaRequestView) -> bool {
    request.status == QuotaRequestStatus::Requested
}

/// An approval.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = Approval)]
pub(crate) struct ApprovalPayload {
    /// Notifications a day, when not as many as were asked for.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1_000_000_000)]
    pub(crate) granted: Option<i64>,
    /// Attempts a second, when not as many as were asked for; as they are when neither says any.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 100_000)]
    pub(crate) granted_per_second: Option<i64>,
    /// A word about it, for the reseller; at most 2,000 bytes.
    #[schema(max_length = 2_000)]
    pub(crate) note: Option<String>,
}

/// A denial.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = Denial)]
pub(crate) struct DenialPayload {
    /// Why, for the reseller, which gets it by mail; at most 2,000 bytes. Nothing is denied without it.
    #[schema(max_length = 2_000)]
    pub(crate) note: Option<String>,
}

/// Lists quota requests of all resellers, the newest first.
#[utoipa::path(
    get, path = "/quota-requests", tag = "quota requests", operation_id = "listQuotaRequests",
    security(("apiKey" = [])),
    params(QuotaRequestParams),
    responses((status = 200, description = "A part of the list.", body = List<ListedDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    ReadParams(params, mut wrong): ReadParams<QuotaRequestParams>,
) -> Result<Json<List<ListedDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let before = wrong.take(paging::read_id(params.cursor.as_deref()));
    let status: Result<Option<QuotaRequestStatus>, _> = params.status.map(|name| name.parse()).transpose();
    let must = "must be REQUESTED, APPROVED or DENIED";
    let status =
        wrong.take(status.map_err(|_| Problem::query("status", must).coded(FieldCode::UnknownValue)));
    wrong.end()?;
    let list = app.store.list_quota_requests(None, status, before, limit + 1);
    let found = http_api::by(viewer.deadline, ("the quota requests", "read"), list).await?;
    let sent = if found.iter().any(asks) {
        let today = day_of(app.now(), app.config.reseller.quota.time_zone);
        let since = today.checked_sub_days(Days::new(SENT_DAYS)).unwrap_or(today);
        let charged = app.store.charged_a_day(since, today);
        http_api::by(viewer.deadline, ("what is sent on a day", "read"), charged).await?
    } else {
        None
    };
    let open = found.iter().filter(|request| is_open(request));
    let open: Vec<Uuid> = open.map(|request| request.subscription).collect();
    let present = if open.is_empty() {
        HashMap::new()
    } else {
        let reading = app.store.present_limits(&open, app.now());
        http_api::by(viewer.deadline, ("the quotas", "read"), reading).await?
    };
    let listed = |request| ListedDocument::new(request, sent, &present);
    Ok(Json(List::by_id(found, limit, |view| view.id, listed)))
}

/// Approves a quota request.
///
/// The quota holds at once, for what waits as for what comes, oldest first.
#[utoipa::path(
    post, path = "/quota-requests/{id}/approve", tag = "quota requests", operation_id = "approveQuotaRequest",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The quota request's identifier.")),
    request_body = ApprovalPayload,
    responses((status = 200, description = "The quota request as it is now.", body = QuotaRequestView))
)]
pub(crate) async fn approve(
    State(app): State<Arc<App>>,
    admin: Administrator,
    Id(id): Id,
    Payload(payload): Payload<ApprovalPayload>,
) -> Result<Json<QuotaRequestView>, Problem> {
    let mut wrong = Vec::new();
    let mut read = |name, given: Option<i64>, most| {
        let read = between(name, given?, (1, most));
        read.map_err(|problem| wrong.push(problem)).ok()
    };
    let granted = Granted {
        daily: read("granted", payload.granted, QUOTA_MAX),
        per_second: read(
            "grantedPerSecond",
            payload.granted_per_second,
            REQUESTS_PER_SECOND_MAX,
        ),
    };
    let is_right = wrong.is_empty().then_some(());
    let rest = is_right.ok_or_else(|| Problem::fields(wrong));
    note::with(note::optional(payload.note.as_deref()), rest)?;
    decide(&app, &admin, id, Some(granted), payload.note).await
}

/// Denies a quota request.
#[utoipa::path(
    post, path = "/quota-requests/{id}/deny", tag = "quota requests", operation_id = "denyQuotaRequest",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The quota request's identifier.")),
    request_body = DenialPayload,
    responses((status = 200, description = "The quota request as it is now.", body = QuotaRequestView))
)]
pub(crate) async fn deny(
    State(app): State<Arc<App>>,
    admin: Administrator,
    Id(id): Id,
    Payload(payload): Payload<DenialPayload>,
) -> Result<Json<QuotaRequestView>, Problem> {
    note::required(payload.note.as_deref())?;
    decide(&app, &admin, id, None, payload.note).await
}

/// What is given; `None` for what was asked for.
struct Granted {
    daily: Option<u32>,
    per_second: Option<u32>,
}

async fn decide(
    app: &App,
    admin: &Administrator,
    id: Uuid,
    granted: Option<Granted>,
    note: Option<String>,
) -> Result<Json<QuotaRequestView>, Problem> {
    let decision = Decision {
        approve: granted.is_some(),
        granted: granted.as_ref().and_then(|granted| granted.daily),
        granted_per_second: granted.and_then(|granted| granted.per_second),
        note: note::optional(note.as_deref())?.map(str::to_owned),
        by: admin.signature.clone(),
        at: app.now(),
    };
    let decide = app.store.decide_quota_request(id, &decision);
    match http_api::by(admin.deadline, ("the quota request", "decided"), decide).await? {
        Decided::Done(view) => Ok(Json(*view)),
        Decided::Before(status) => Err(Problem::new(
            ProblemKind::CONFLICT,
            format!("the quota request is {status} already"),
        )),
        Decided::Unknown => Err(Problem::new(
            ProblemKind::NOT_FOUND,
            "no quota request has this identifier",
        )),
    }
}

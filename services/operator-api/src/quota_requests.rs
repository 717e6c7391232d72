//! Requests of resellers for a higher quota, which administrators decide.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::subscription::QuotaRequestStatus;
use http_api::paging::{self, List};
use http_api::{FieldProblem, Id, Params, Payload, Problem, ProblemKind};
use serde::Deserialize;
use store::webhook::{Decided, Decision, QuotaRequestView};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::note;
use crate::request::{Administrator, Viewer};

/// Greatest daily quota.
pub(crate) const QUOTA_MAX: u32 = 1_000_000_000;

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

/// An approval.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = Approval)]
pub(crate) struct ApprovalPayload {
    /// Notifications a day, when not as many as were asked for.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1_000_000_000)]
    pub(crate) granted: Option<i64>,
    /// A word about it, for the reseller; at most 2,000 bytes.
    #[schema(max_length = 2_000)]
    pub(crate) note: Option<String>,
}

/// A denial.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = Denial)]
pub(crate) struct DenialPayload {
    /// A word about it, for the reseller; at most 2,000 bytes.
    #[schema(max_length = 2_000)]
    pub(crate) note: Option<String>,
}

/// Lists quota requests of all resellers, the newest first.
#[utoipa::path(
    get, path = "/quota-requests", tag = "quota requests", operation_id = "listQuotaRequests",
    security(("apiKey" = [])),
    params(QuotaRequestParams),
    responses((status = 200, description = "A part of the list.", body = List<QuotaRequestView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Params(params): Params<QuotaRequestParams>,
) -> Result<Json<List<QuotaRequestView>>, Problem> {
    let limit = paging::limit(params.limit)?;
    let before = paging::read_id(params.cursor.as_deref())?;
    let status: Option<QuotaRequestStatus> = params
        .status
        .map(|name| name.parse())
        .transpose()
        .map_err(|_| Problem::query("status", "must be REQUESTED, APPROVED or DENIED"))?;
    let list = app.store.list_quota_requests(None, status, before, limit + 1);
    let found = http_api::by(viewer.deadline, ("the quota requests", "read"), list).await?;
    Ok(Json(List::by_id(found, limit, |view| view.id, |view| view)))
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
    let granted = payload.granted.map(check_quota).transpose()?;
    decide(&app, &admin, id, (true, granted), payload.note).await
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
    decide(&app, &admin, id, (false, None), payload.note).await
}

fn check_quota(asked: i64) -> Result<u32, Problem> {
    let quota = u32::try_from(asked).ok();
    quota
        .filter(|quota| (1..=QUOTA_MAX).contains(quota))
        .ok_or_else(|| {
            let detail = format!("must be between 1 and {QUOTA_MAX}");
            Problem::fields(vec![FieldProblem::new("granted", detail)])
        })
}

async fn decide(
    app: &App,
    admin: &Administrator,
    id: Uuid,
    (approve, granted): (bool, Option<u32>),
    note: Option<String>,
) -> Result<Json<QuotaRequestView>, Problem> {
    let decision = Decision {
        approve,
        granted,
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

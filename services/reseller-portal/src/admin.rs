//! What administrators decide: `/admin/quota-requests`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::subscription::QuotaRequestStatus;
use http_api::paging::{self, List};
use http_api::{FieldProblem, Id, Params, Payload, Problem, ProblemKind};
use serde::{Deserialize, Serialize};
use store::reseller::{Decided, Decision, QuotaRequestView};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::problems::QUOTA_REQUEST_DECIDED;
use crate::quotas::{QUOTA_MAX, QuotaRequestDocument, check_quota};
use crate::request::Admin;

/// Longest note, in bytes.
const NOTE_MAX_BYTES: usize = 2_000;

/// A quota request as administrators see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AdminQuotaRequest)]
pub(crate) struct AdminQuotaRequestDocument {
    /// Whose it is.
    reseller_id: String,
    /// Who decided.
    decided_by: Option<String>,
    #[serde(flatten)]
    request: QuotaRequestDocument,
}

impl From<QuotaRequestView> for AdminQuotaRequestDocument {
    fn from(view: QuotaRequestView) -> Self {
        Self {
            reseller_id: view.reseller.clone(),
            decided_by: view.decided_by.clone(),
            request: view.into(),
        }
    }
}

/// Which quota requests.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AdminQuotaRequestParams {
    /// Of this status: REQUESTED, APPROVED or DENIED; of any when missing.
    status: Option<String>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// What the previous part gave as `next`.
    cursor: Option<String>,
}

/// An approval.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schema(as = Approval)]
pub(crate) struct ApprovalPayload {
    /// Notifications a day, when not as many as were asked for.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1_000_000_000)]
    granted: Option<i64>,
    /// A word about it, for the reseller.
    note: Option<String>,
}

/// A denial.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schema(as = Denial)]
pub(crate) struct DenialPayload {
    /// A word about it, for the reseller.
    note: Option<String>,
}

/// Lists quota requests of all resellers, the newest first.
#[utoipa::path(
    get, path = "/admin/quota-requests", tag = "administration", operation_id = "adminListQuotaRequests",
    security(("apiKey" = [])),
    params(AdminQuotaRequestParams),
    responses((status = 200, description = "A part of the list.", body = List<AdminQuotaRequestDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    admin: Admin,
    Params(params): Params<AdminQuotaRequestParams>,
) -> Result<Json<List<AdminQuotaRequestDocument>>, Problem> {
    let limit = paging::limit(params.limit)?;
    let before = paging::read_id(params.cursor.as_deref())?;
    let status: Option<QuotaRequestStatus> = params
        .status
        .map(|name| name.parse())
        .transpose()
        .map_err(|_| Problem::query("status", "must be REQUESTED, APPROVED or DENIED"))?;
    let list = app.store.list_quota_requests(None, status, before, limit + 1);
    let found = http_api::by(admin.deadline, ("the quota requests", "read"), list).await?;
    Ok(Json(List::by_id(
        found,
        limit,
        |view| view.id,
        AdminQuotaRequestDocument::from,
    )))
}

/// Approves a quota request.
///
/// The quota holds at once; what waits for a coming day gets a new place.
#[utoipa::path(
    post, path = "/admin/quota-requests/{id}/approve", tag = "administration", operation_id = "approveQuotaRequest",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The quota request's identifier.")),
    request_body = ApprovalPayload,
    responses((status = 200, description = "The quota request as it is now.", body = AdminQuotaRequestDocument))
)]
pub(crate) async fn approve(
    State(app): State<Arc<App>>,
    admin: Admin,
    Id(id): Id,
    Payload(payload): Payload<ApprovalPayload>,
) -> Result<Json<AdminQuotaRequestDocument>, Problem> {
    let granted = check_quota(payload.granted);
    if payload.granted.is_some() && granted.is_none() {
        let detail = format!("must be between 1 and {QUOTA_MAX}");
        return Err(Problem::fields(vec![FieldProblem::new("granted", detail)]));
    }
    decide(&app, &admin, id, (true, granted), payload.note).await
}

/// Denies a quota request.
#[utoipa::path(
    post, path = "/admin/quota-requests/{id}/deny", tag = "administration", operation_id = "denyQuotaRequest",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The quota request's identifier.")),
    request_body = DenialPayload,
    responses((status = 200, description = "The quota request as it is now.", body = AdminQuotaRequestDocument))
)]
pub(crate) async fn deny(
    State(app): State<Arc<App>>,
    admin: Admin,
    Id(id): Id,
    Payload(payload): Payload<DenialPayload>,
) -> Result<Json<AdminQuotaRequestDocument>, Problem> {
    decide(&app, &admin, id, (false, None), payload.note).await
}

async fn decide(
    app: &App,
    admin: &Admin,
    id: Uuid,
    (approve, granted): (bool, Option<u32>),
    note: Option<String>,
) -> Result<Json<AdminQuotaRequestDocument>, Problem> {
    if let Some(note) = note.as_ref().filter(|note| note.len() > NOTE_MAX_BYTES) {
        let detail = format!(
            "is {} bytes long, but may be at most {NOTE_MAX_BYTES}",
            note.len()
        );
        return Err(Problem::fields(vec![FieldProblem::new("note", detail)]));
    }
    let decision = Decision {
        approve,
        granted,
        note,
        by: admin.signature(),
        at: app.now(),
    };
    let decide = app.store.decide_quota_request(id, &decision);
    match http_api::by(admin.deadline, ("the quota request", "decided"), decide).await? {
        Decided::Done(view) => Ok(Json((*view).into())),
        Decided::Before(status) => Err(Problem::new(
            QUOTA_REQUEST_DECIDED,
            format!("the quota request is {status} already"),
        )),
        Decided::Unknown => Err(Problem::new(
            ProblemKind::NOT_FOUND,
            "no quota request has this identifier",
        )),
    }
}

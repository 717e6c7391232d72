//! `GET /mails`, what resellers are told by mail, and `POST /mails/retry`, sending it at once.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::email::EmailStatus;
use http_api::{Payload, Problem, ReadParams, paging};
use serde::{Deserialize, Serialize};
use store::webhook::EmailView;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::dead_letters::filter::names;
use crate::examined::{Part, times, word};
use crate::note;
use crate::request::{Operator, Viewer};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(retry))
}

/// Which mails.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MailParams {
    /// In this status: PENDING, SENDING, SENT or FAILED.
    #[param(default = "PENDING")]
    pub(crate) status: Option<String>,
    /// About this subscription.
    pub(crate) subscription: Option<Uuid>,
    /// How many mails.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// A mail.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Mail)]
pub(crate) struct MailDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// The occasion: RETRIES_EXHAUSTED, STATE_CHANGED, VERIFICATION_FAILED, DELIVERY_REFUSED, QUOTA_DECIDED, ADDRESS_CONFIRMATION,
    /// SECURITY_CHANGED or DELIVERIES_RECOVERED.
    #[schema(example = "STATE_CHANGED")]
    pub(crate) kind: &'static str,
    /// Where it stands: PENDING, SENDING, SENT or FAILED.
    #[schema(example = "PENDING")]
    pub(crate) status: &'static str,
    /// Whose subscription it is about.
    #[schema(example = "acme")]
    pub(crate) reseller_id: String,
    /// The subscription that it is about.
    pub(crate) subscription_id: Uuid,
    /// The address.
    #[schema(example = "ops@acme.example")]
    pub(crate) recipient: String,
    /// How many occasions it stands for.
    pub(crate) occurrences: u64,
    /// Attempts so far.
    pub(crate) attempts: u32,
    /// When it is due, while it is PENDING.
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    /// Why it was not sent, when it last was not.
    #[schema(example = "the mail server did not take the mail: 451 4.7.1 try again later")]
    pub(crate) last_error: Option<String>,
    /// When what it tells happened last.
    pub(crate) created_at: DateTime<Utc>,
    /// When it was sent, or given up.
    pub(crate) finished_at: Option<DateTime<Utc>>,
}

impl MailDocument {
    fn of(mail: EmailView) -> Self {
        Self {
            id: mail.id,
            kind: mail.kind.as_str(),
            status: mail.status.as_str(),
            reseller_id: mail.reseller,
            subscription_id: mail.subscription,
            recipient: mail.recipient,
            occurrences: mail.occurrences,
            attempts: mail.attempts,
            next_attempt_at: mail.next_attempt_at,
            last_error: mail.last_error,
            created_at: mail.created_at,
            finished_at: mail.finished_at,
        }
    }
}

/// Lists mails: those that wait by when they are due, those that have ended the last one first.
///
/// At most 10,000 mails are looked at for a part, so that one may be short, or even empty, although others follow: only `next` tells the
/// end.
#[utoipa::path(
    get, path = "/mails", tag = "mails", operation_id = "listMails", security(("apiKey" = [])),
    params(MailParams),
    responses((status = 200, description = "A part of the list.", body = Part<MailDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    ReadParams(params, mut wrong): ReadParams<MailParams>,
) -> Result<Json<Part<MailDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let after = wrong.take(paging::read_at(params.cursor.as_deref()));
    let statuses = names(&EmailStatus::ALL, EmailStatus::as_str);
    let status = wrong.take(word("status", params.status.as_deref(), &statuses));
    wrong.end()?;
    let status = status.unwrap_or(EmailStatus::Pending);
    let listing = app.store.list_emails(status, params.subscription, after, limit);
    let found = http_api::by(viewer.deadline, ("the mails", "read"), listing).await?;
    Ok(Json(Part::of(found, MailDocument::of)))
}

/// Which mails are to be sent at once.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = MailRetry)]
pub(crate) struct RetryPayload {
    /// Those too that failed at this time or later, save mails about exhausted retries, refused and recovered deliveries, which are gathered
    /// in the next one.
    pub(crate) failed_since: Option<DateTime<Utc>>,
    /// Why; at most 2,000 bytes.
    #[schema(max_length = 2_000, example = "The mail server is back.")]
    pub(crate) note: Option<String>,
}

/// How many mails are sent at once.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MailsRetried)]
pub(crate) struct RetriedDocument {
    /// How many were made due.
    #[schema(example = 12)]
    pub(crate) mails: u64,
}

/// Sends the mails that wait at once, and failed ones again.
///
/// At most 10,000 that wait and 10,000 that failed; ask again for more.
#[utoipa::path(
    post, path = "/mails/retry", tag = "mails", operation_id = "retryMails", security(("apiKey" = [])),
    request_body = RetryPayload,
    responses((status = 200, description = "They are due.", body = RetriedDocument))
)]
pub(crate) async fn retry(
    operator: Operator,
    Payload(payload): Payload<RetryPayload>,
) -> Result<Json<RetriedDocument>, Problem> {
    let (since, _) = times(payload.failed_since, None)?;
    let act = operator.act(note::optional(payload.note.as_deref())?);
    let retrying = operator.app.store.retry_emails(since, act);
    let mails = http_api::by(operator.deadline, ("the mails", "sent"), retrying).await?;
    Ok(Json(RetriedDocument { mails }))
}

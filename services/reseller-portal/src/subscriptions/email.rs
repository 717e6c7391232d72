//! The address of a subscription: giving back the code that was sent there, and having it sent once more.
//!
//! The code is given back with the reseller's key. A link in the mail would be followed by mail scanners, who are not asked.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use http_api::{FieldProblem, Id, Payload, Problem};
use serde::Deserialize;
use store::webhook::{CodeChecked, ConfirmationAsked};
use utoipa::ToSchema;

use super::SubscriptionDocument;
use crate::app::App;
use crate::problems::{self, CODE_VOID};
use crate::request::Manager;

/// Longer texts are no codes.
const CODE_MAX_BYTES: usize = 64;

/// The code that an address got.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schema(as = Code)]
pub(crate) struct CodePayload {
    /// As it stands in the mail; upper and lower case are the same.
    #[schema(value_type = String, required = true, max_length = 64, example = "5F0C81A94D")]
    pub(crate) code: Option<String>,
}

/// Confirms the subscription's address with the code that was sent there.
///
/// What waited for that is sent now. It holds for every subscription of the reseller with this address. Ten wrong codes make it
/// void; another one can be sent.
#[utoipa::path(
    post, path = "/subscriptions/{id}/email/confirm", tag = "subscriptions", operation_id = "confirmEmail",
    security(("apiKey" = [])),
    params(("id" = uuid::Uuid, Path, description = "The subscription's identifier.")),
    request_body = CodePayload,
    responses((status = 200, description = "The subscription as it is now.", body = SubscriptionDocument))
)]
pub(crate) async fn confirm_email(
    State(app): State<Arc<App>>,
    reseller: Manager,
    Id(id): Id,
    Payload(payload): Payload<CodePayload>,
) -> Result<Json<SubscriptionDocument>, Problem> {
    let wrong = || Problem::fields(vec![FieldProblem::new("code", "is not the code that was sent")]);
    let code = payload
        .code
        .filter(|code| code.len() <= CODE_MAX_BYTES && !code.contains('\0'));
    let code = code.ok_or_else(wrong)?;
    let act = reseller.act(app.now());
    let confirm = app.store.confirm_address(&reseller.id, id, &code, act);
    match http_api::by(reseller.deadline, ("the address", "confirmed"), confirm).await? {
        CodeChecked::Right(view) => Ok(Json(SubscriptionDocument::of(*view, &app.config))),
        CodeChecked::Wrong => Err(wrong()),
        CodeChecked::Void => Err(Problem::new(
            CODE_VOID,
            "there is no code that could still be used",
        )),
        CodeChecked::Unknown => Err(problems::no_subscription()),
    }
}

/// Sends the code to the subscription's address once more.
///
/// At most three such mails go to an address in a day, and at most 20 for a reseller. An address that is confirmed gets none.
#[utoipa::path(
    post, path = "/subscriptions/{id}/email/resend", tag = "subscriptions", operation_id = "resendEmailCode",
    security(("apiKey" = [])),
    params(("id" = uuid::Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 202, description = "It will be sent, unless the address is confirmed."))
)]
pub(crate) async fn resend_code(
    State(app): State<Arc<App>>,
    reseller: Manager,
    Id(id): Id,
) -> Result<StatusCode, Problem> {
    let now = app.now();
    let ask = app
        .store
        .ask_for_confirmation(&reseller.id, id, reseller.act(now));
    match http_api::by(reseller.deadline, ("the code", "sent"), ask).await? {
        ConfirmationAsked::Done | ConfirmationAsked::NotNeeded => Ok(StatusCode::ACCEPTED),
        ConfirmationAsked::NotBefore(then) => {
            let detail = "as many codes were sent to this address, or for this reseller, as may be in a day";
            Err(problems::not_before(detail, then, now))
        }
        ConfirmationAsked::Unknown => Err(problems::no_subscription()),
    }
}

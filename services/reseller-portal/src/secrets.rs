//! Signing secrets: `/subscriptions/{id}/secrets`. A secret is shown by the answer that makes it, and never again.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http::{HeaderName, StatusCode, header};
use http_api::paging::List;
use http_api::{Id, Ids, Problem, ProblemKind};
use lifecycle::error_chain;
use sealing::Sealer;
use serde::Serialize;
use signing::Secret;
use store::reseller::{NewSecret, Revoked, Rotated, SecretView};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::{App, new_id};
use crate::problems::{self, LAST_SECRET, TOO_MANY_SECRETS};
use crate::request::Reseller;

/// A secret that was just made. Has no `Debug`, so that it cannot get into a log.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewSecret)]
pub(crate) struct NewSecretDocument {
    /// Its identifier.
    id: Uuid,
    /// The secret: whsec_ and base64. It is shown this once.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: String,
    /// When it was made.
    created_at: DateTime<Utc>,
}

/// A secret, without what it is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Secret)]
pub(crate) struct SecretDocument {
    /// Its identifier.
    id: Uuid,
    /// When it was made.
    created_at: DateTime<Utc>,
    /// Until when it signs along, if it was replaced.
    expires_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    revoked_at: Option<DateTime<Utc>>,
    /// Whether it signs now.
    active: bool,
}

/// A new secret for a subscription: sealed for the database, and as its reseller gets it.
pub(crate) fn make(
    sealer: &Sealer,
    subscription: Uuid,
    now: DateTime<Utc>,
) -> Result<(NewSecret, NewSecretDocument), Problem> {
    let secret = Secret::generate();
    let id = new_id(now);
    let sealed = sealer
        .seal(subscription, secret.expose_bytes())
        .map_err(|error| {
            tracing::error!(error = error_chain(&error), "failed to seal a secret");
            Problem::new(ProblemKind::INTERNAL, "the secret could not be sealed")
        })?;
    let shown = NewSecretDocument {
        id,
        secret: secret.reveal().as_str().to_owned(),
        created_at: now,
    };
    Ok((NewSecret { id, sealed }, shown))
}

/// The header of answers that show a secret.
pub(crate) fn not_to_be_kept() -> (HeaderName, String) {
    (header::CACHE_CONTROL, "no-store".to_owned())
}

/// Makes a new secret.
///
/// From now on every request is signed with it, and for reseller.secrets.overlapInHours with those before it as well.
#[utoipa::path(
    post, path = "/subscriptions/{id}/secrets", tag = "secrets", operation_id = "rotateSecret",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 201, description = "The secret. It is shown this once.", body = NewSecretDocument))
)]
pub(crate) async fn rotate(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(subscription): Id,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<NewSecretDocument>), Problem> {
    let now = app.now();
    let (sealed, shown) = make(app.sealer()?, subscription, now)?;
    let overlap = app.config.reseller.secrets.overlap;
    let rotate = app
        .store
        .rotate_secret((&reseller.id, subscription), &sealed, overlap, reseller.act(now));
    match http_api::by(reseller.deadline, ("the secret", "stored"), rotate).await? {
        Rotated::Done => Ok((StatusCode::CREATED, [not_to_be_kept()], Json(shown))),
        Rotated::TooMany => Err(Problem::new(
            TOO_MANY_SECRETS,
            "five secrets of the subscription are valid; revoke one of them first",
        )),
        Rotated::Unknown => Err(problems::no_subscription()),
    }
}

/// Lists the secrets, the newest first, without what they are.
#[utoipa::path(
    get, path = "/subscriptions/{id}/secrets", tag = "secrets", operation_id = "listSecrets",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 200, description = "The last hundred of them.", body = List<SecretDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(subscription): Id,
) -> Result<Json<List<SecretDocument>>, Problem> {
    let list = app.store.list_secrets(&reseller.id, subscription);
    let found = http_api::by(reseller.deadline, ("the secrets", "read"), list).await?;
    let now = app.now();
    let secrets = found.ok_or_else(problems::no_subscription)?.into_iter();
    let items = secrets.map(|view| document(&view, now)).collect();
    Ok(Json(List::new(items, None)))
}

/// Revokes a secret: it signs nothing any more, at once.
#[utoipa::path(
    delete, path = "/subscriptions/{id}/secrets/{secret}", tag = "secrets", operation_id = "revokeSecret",
    security(("apiKey" = [])),
    params(
        ("id" = Uuid, Path, description = "The subscription's identifier."),
        ("secret" = Uuid, Path, description = "The secret's identifier."),
    ),
    responses((status = 204, description = "It is revoked."))
)]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Ids(subscription, secret): Ids,
) -> Result<StatusCode, Problem> {
    let revoke = app
        .store
        .revoke_secret((&reseller.id, subscription), secret, reseller.act(app.now()));
    match http_api::by(reseller.deadline, ("the secret", "revoked"), revoke).await? {
        Revoked::Done => Ok(StatusCode::NO_CONTENT),
        Revoked::Last => Err(Problem::new(
            LAST_SECRET,
            "it is the last secret without an end; make a new one first",
        )),
        Revoked::Unknown => Err(Problem::new(
            ProblemKind::NOT_FOUND,
            "no secret has this identifier",
        )),
    }
}

fn document(view: &SecretView, now: DateTime<Utc>) -> SecretDocument {
    SecretDocument {
        id: view.id,
        created_at: view.created_at,
        expires_at: view.expires_at,
        revoked_at: view.revoked_at,
        active: view.revoked_at.is_none() && view.expires_at.is_none_or(|end| end > now),
    }
}

//! Signing secrets: `/subscriptions/{id}/secrets`. A secret is in the answer that makes it, and in the one that was asked for it
//! where the installation allows that.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http::{HeaderName, StatusCode, header};
use http_api::{FieldCode, FieldProblem, Id, Ids, Payload, Problem, ProblemKind};
use lifecycle::error_chain;
use serde::{Deserialize, Serialize};
use signing::{MAX_SECRET_BYTES, MIN_SECRET_BYTES, SECRET_PREFIX, Secret, SecretError};
use store::webhook::{NewSecret, Revoked, Rotated, SecretView};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::{App, new_id};
use crate::opened::open;
use crate::problems::{self, LAST_SECRET, SECRETS_HIDDEN, TOO_MANY_SECRETS};
use crate::request::{Reseller, Revealer, Rotator};

/// The fewest different bytes of a secret that a reseller brings. 24 random ones, the fewest that a secret has, fall short of it once in
/// 10^13 times: what does was typed.
const DISTINCT_BYTES: usize = 12;
/// The longest that a replaced secret signs along, where the configuration has less.
const OVERLAP_MAX: Duration = Duration::from_hours(168);

/// What a new secret is to be.
// Has no `Debug`, so that it cannot get into a log.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schema(as = SecretRequest)]
pub(crate) struct SecretPayload {
    /// A secret of the reseller's own: whsec_ and the base64 of 24 to 64 random bytes. One is made when it is left out.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    pub(crate) secret: Option<String>,
    /// For how many hours the secrets before it sign along, at most reseller.secrets.overlapInHours or a week, whichever is more;
    /// reseller.secrets.overlapInHours when missing.
    #[schema(minimum = 0, example = 24)]
    pub(crate) overlap_hours: Option<u64>,
}

/// A secret with what it is.
// Has no `Debug`, so that it cannot get into a log.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewSecret)]
pub(crate) struct NewSecretDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// The secret: whsec_ and base64. To be kept like a password.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    pub(crate) secret: String,
    /// When it was made.
    pub(crate) created_at: DateTime<Utc>,
}

/// A secret, without what it is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Secret)]
pub(crate) struct SecretDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// When it was made.
    pub(crate) created_at: DateTime<Utc>,
    /// Until when it signs along, if it was replaced.
    pub(crate) expires_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    pub(crate) revoked_at: Option<DateTime<Utc>>,
    /// Whether it signs now.
    pub(crate) active: bool,
    /// Who made it: the name of a key, or the person who visited; null when that is not known any more.
    #[schema(example = "integration (019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d)")]
    pub(crate) created_by: Option<String>,
}

/// The secrets of a subscription, without what they are.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Secrets)]
pub(crate) struct SecretsDocument {
    /// The last hundred of them, the newest first.
    pub(crate) items: Vec<SecretDocument>,
    /// Always null: the list has one part.
    pub(crate) next: Option<String>,
    /// How the endpoint has answered since they last changed.
    pub(crate) answers: AnswersDocument,
}

/// How an endpoint has answered since its secrets last changed. 401 or 403 often says that it checks with another secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SecretAnswers)]
pub(crate) struct AnswersDocument {
    /// When a secret was last made or revoked.
    pub(crate) since: DateTime<Utc>,
    /// How many attempts began since then and have ended.
    #[schema(example = 120)]
    pub(crate) attempts: u64,
    /// How many of them were answered 401 or 403.
    #[schema(example = 3)]
    pub(crate) refused: u64,
    /// Of how many notifications, the newest, these attempts are; null when those are all.
    #[schema(example = 1_000)]
    pub(crate) of_newest: Option<u64>,
}

/// A new secret for a subscription, the `chosen` one if there is one: sealed for the database, and as its reseller gets it.
pub(crate) fn make(
    app: &App,
    subscription: Uuid,
    chosen: Option<&str>,
    now: DateTime<Utc>,
) -> Result<(NewSecret, NewSecretDocument), Problem> {
    let secret = match chosen {
        None => Secret::generate(),
        Some(_) if !app.config.reseller.secrets.allow_choosing => {
            return Err(unusable(
                "is made by this installation itself: leave the field out",
            ));
        }
        Some(text) => check(text)?,
    };
    let id = new_id(now);
    let sealed = app
        .sealer()?
        .seal(subscription, secret.expose_bytes())
        .map_err(|error| {
            tracing::error!(error = error_chain(&error), "failed to seal a secret");
            Problem::new(ProblemKind::INTERNAL, "the secret could not be sealed")
        })?;
    Ok((NewSecret { id, sealed }, shown(id, &secret, now)))
}

/// A secret that a reseller brings, if it is one that cannot be guessed.
fn check(text: &str) -> Result<Secret, Problem> {
    let secret = Secret::parse(text).map_err(|error| unusable(malformed(error)))?;
    let distinct: HashSet<&u8> = secret.expose_bytes().iter().collect();
    if distinct.len() < DISTINCT_BYTES {
        return Err(unusable(
            "has bytes that repeat too much to be random: `openssl rand -base64 32` makes some, to be put behind whsec_",
        ));
    }
    Ok(secret)
}

/// Why a text is no secret, as it is said of a field: its name comes before it.
pub(crate) fn malformed(error: SecretError) -> String {
    match error {
        SecretError::Prefix => format!("has to begin with {SECRET_PREFIX}"),
        SecretError::Base64 => {
            format!("is not base64 (standard alphabet, with padding) after {SECRET_PREFIX}")
        }
        SecretError::TooShort(bytes) => {
            format!("has to have at least {MIN_SECRET_BYTES} bytes, and has {bytes}")
        }
        SecretError::TooLong(bytes) => format!("may have at most {MAX_SECRET_BYTES} bytes, and has {bytes}"),
    }
}

fn unusable(why: impl Into<String>) -> Problem {
    Problem::fields(vec![
        FieldProblem::new("secret", why).coded(FieldCode::WrongFormat),
    ])
}

fn shown(id: Uuid, secret: &Secret, created_at: DateTime<Utc>) -> NewSecretDocument {
    NewSecretDocument {
        id,
        secret: secret.reveal().as_str().to_owned(),
        created_at,
    }
}

/// The header of answers that show a secret.
pub(crate) fn not_to_be_kept() -> (HeaderName, String) {
    (header::CACHE_CONTROL, "no-store".to_owned())
}

/// Rotates the secret: makes a new one, or takes one that the reseller brings.
///
/// From now on every request is signed with it, and for reseller.secrets.overlapInHours (or overlapHours) with those before it as well. Without a body
/// the secret is made here; whether one can be brought is reseller.secrets.allowChoosing.
#[utoipa::path(
    post, path = "/subscriptions/{id}/secrets", tag = "secrets", operation_id = "rotateSecret",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    request_body(content = SecretPayload, description = "May be left out."),
    responses((status = 201, description = "The secret.", body = NewSecretDocument))
)]
pub(crate) async fn rotate(
    State(app): State<Arc<App>>,
    reseller: Rotator,
    Id(subscription): Id,
    payload: Option<Payload<SecretPayload>>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<NewSecretDocument>), Problem> {
    let now = app.now();
    let payload = payload.map(|Payload(payload)| payload).unwrap_or_default();
    let (sealed, shown) = make(&app, subscription, payload.secret.as_deref(), now)?;
    let overlap = overlap(&app, payload.overlap_hours)?;
    let rotate = app
        .store
        .rotate_secret((&reseller.id, subscription), &sealed, overlap, reseller.act(now));
    match http_api::by(reseller.deadline, ("the secret", "stored"), rotate).await? {
        Rotated::Done => Ok((StatusCode::CREATED, [not_to_be_kept()], Json(shown))),
        Rotated::TooMany => Err(Problem::new(
            TOO_MANY_SECRETS,
            "five secrets of the subscription are valid; revoke one of them first",
        )),
        Rotated::NotBefore(then) => {
            let detail = "as many secrets of the subscription were made as may be in a day";
            Err(problems::not_before(detail, then, now))
        }
        Rotated::Unknown => Err(problems::no_subscription()),
    }
}

/// For how long the secrets before a new one sign along.
fn overlap(app: &App, asked: Option<u64>) -> Result<Duration, Problem> {
    let usual = app.config.reseller.secrets.overlap;
    let longest = usual.max(OVERLAP_MAX);
    let asked = asked.map_or(usual, |hours| Duration::from_secs(hours.saturating_mul(3_600)));
    if asked <= longest {
        return Ok(asked);
    }
    let hours = longest.as_secs() / 3_600;
    let wrong = FieldProblem::new("overlapHours", format!("must be between 0 and {hours}"));
    Err(Problem::fields(vec![wrong.between(0, hours)]))
}

/// Lists the secrets, the newest first, without what they are, and tells how the endpoint has answered since they last changed.
#[utoipa::path(
    get, path = "/subscriptions/{id}/secrets", tag = "secrets", operation_id = "listSecrets",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 200, description = "The last hundred of them.", body = SecretsDocument))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(subscription): Id,
) -> Result<Json<SecretsDocument>, Problem> {
    let items = of(&app, &reseller, subscription).await?;
    // One that was made or revoked is what endpoints stumble over.
    let changes = items
        .iter()
        .map(|secret| secret.revoked_at.max(Some(secret.created_at)));
    let since = changes.max().flatten().unwrap_or_else(|| app.now());
    let read = app.store.answered_since(subscription, since);
    let answered = http_api::by(reseller.deadline, ("the attempts", "read"), read).await?;
    let answers = AnswersDocument {
        since,
        attempts: answered.attempts,
        refused: answered.refused,
        of_newest: answered.looked_at(),
    };
    Ok(Json(SecretsDocument {
        items,
        next: None,
        answers,
    }))
}

/// The secrets of a subscription, the newest first.
pub(crate) async fn of(
    app: &App,
    reseller: &Reseller,
    subscription: Uuid,
) -> Result<Vec<SecretDocument>, Problem> {
    let list = app.store.list_secrets(&reseller.id, subscription);
    let found = http_api::by(reseller.deadline, ("the secrets", "read"), list).await?;
    let now = app.now();
    let secrets = found.ok_or_else(problems::no_subscription)?.into_iter();
    Ok(secrets.map(|view| document(view, now)).collect())
}

/// Shows a secret that signs at present.
///
/// The look is in the audit log, and the subscription's address is told. Where reseller.secrets.allowViewing is off, a secret is in the answer that makes it and in no other.
#[utoipa::path(
    get, path = "/subscriptions/{id}/secrets/{secret}", tag = "secrets", operation_id = "viewSecret",
    security(("apiKey" = [])),
    params(
        ("id" = Uuid, Path, description = "The subscription's identifier."),
        ("secret" = Uuid, Path, description = "The secret's identifier."),
    ),
    responses((status = 200, description = "The secret.", body = NewSecretDocument))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    reseller: Revealer,
    Ids(subscription, secret): Ids,
) -> Result<([(HeaderName, String); 1], Json<NewSecretDocument>), Problem> {
    if !app.config.reseller.secrets.allow_viewing {
        return Err(Problem::new(
            SECRETS_HIDDEN,
            "a secret is shown by the answer that makes it and never again: make another one",
        ));
    }
    let sealer = app.sealer()?;
    let view = app
        .store
        .view_secret((&reseller.id, subscription), secret, reseller.act(app.now()));
    let found = http_api::by(reseller.deadline, ("the secret", "read"), view).await?;
    let (sealed, created_at) = found.ok_or_else(|| {
        Problem::new(
            ProblemKind::NOT_FOUND,
            "no secret that signs at present has this identifier",
        )
    })?;
    let opened = open(sealer, subscription, &sealed)?;
    Ok(([not_to_be_kept()], Json(shown(secret, &opened, created_at))))
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
    reseller: Rotator,
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
        Revoked::Unknown => Err(no_secret()),
    }
}

pub(crate) fn no_secret() -> Problem {
    Problem::new(ProblemKind::NOT_FOUND, "no secret has this identifier")
}

fn document(view: SecretView, now: DateTime<Utc>) -> SecretDocument {
    SecretDocument {
        id: view.id,
        created_at: view.created_at,
        expires_at: view.expires_at,
        revoked_at: view.revoked_at,
        active: view.revoked_at.is_none() && view.expires_at.is_none_or(|end| end > now),
        created_by: view.created_by,
    }
}

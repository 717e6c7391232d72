//! `POST /subscriptions/{id}/signature-checks`: whether a request is signed as it should be, and if not, why. The secrets of the
//! subscription are opened for it and are never shown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use explain::words;
use http_api::{Draft, FieldCode, FieldProblem, Id, Problem, ProblemKind};
use lifecycle::error_chain;
use serde::{Deserialize, Serialize};
use signature_diagnosis::{Cause, Evidence, diagnose};
use signing::{Secret, SignedHeaders};
use store::webhook::EndedSecret;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::opened::{open, open_ended};
use crate::problems;
use crate::request::Reseller;

/// The longest body that is checked: finding out what happened to one takes as many tries as it is long.
const BODY_MAX_BYTES: usize = 65_536;
/// How far a timestamp may be away, as libraries have it.
const TOLERANCE: Duration = Duration::from_secs(300);

/// As many other subscriptions of the reseller are looked through for the secret of a request, the oldest first.
const OTHERS_MAX: u32 = 20;

/// A request as an endpoint has it.
// Has no `Debug`: bodies are not for logs.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object", default)]
#[schema(as = SignatureCheckRequest)]
pub(crate) struct CheckPayload {
    /// Its headers: webhook-id, webhook-timestamp and webhook-signature; idempotency-key and content-length help. Others are ignored.
    #[schema(value_type = BTreeMap<String, String>, required = true,
        example = json!({"webhook-id": "order-17", "webhook-timestamp": "1795254696", "webhook-signature": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="}))]
    pub(crate) headers: Option<BTreeMap<String, String>>,
    /// Its body, to the byte.
    #[schema(value_type = String, required = true, max_length = 65_536, example = "{\"id\":\"order-17\"}")]
    pub(crate) body: Option<String>,
    /// As of which time it is judged: a time, now when missing; or `recorded` for that of its own timestamp.
    #[schema(example = "recorded")]
    pub(crate) at: Option<String>,
}

/// What is to be thought of a signature.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SignatureCheck)]
pub(crate) struct CheckDocument {
    /// `verified`, or the word for what is wrong: that of the libraries for every language.
    #[schema(example = "no_match")]
    pub(crate) verdict: &'static str,
    /// Which secret it was signed with, if it was signed with one of the subscription.
    pub(crate) secret_id: Option<Uuid>,
    /// Seconds from its timestamp to the time as of which it is judged; below zero when the timestamp is ahead.
    pub(crate) age_seconds: Option<i64>,
    /// Why, the likeliest first.
    pub(crate) causes: Vec<CauseDocument>,
    /// What is signed: identifier, timestamp and body with a full stop between them; null when one of them is missing.
    pub(crate) signed_content: Option<String>,
    /// How many secrets of the subscription were tried.
    pub(crate) secrets_tried: usize,
}

/// Why a signature is not accepted.
#[derive(Serialize, ToSchema)]
#[schema(as = SignatureCause)]
pub(crate) struct CauseDocument {
    /// A stable word for it.
    #[schema(example = "reserialised_body")]
    pub(crate) code: &'static str,
    /// What it is.
    pub(crate) text: String,
    /// What mends it.
    pub(crate) mend: String,
}

impl From<&Cause> for CauseDocument {
    fn from(cause: &Cause) -> Self {
        Self {
            code: cause.code(),
            text: cause.to_string(),
            mend: cause.mend(),
        }
    }
}

/// What was checked of a payload.
struct Request {
    headers: BTreeMap<String, String>,
    body: String,
    now: i64,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Whether it is signed with this secret, as of its own time.
    fn is_signed_with(&self, secret: &Secret) -> bool {
        let headers = SignedHeaders::read(|name| self.header(name));
        let at: Option<i64> = headers.timestamp.and_then(|text| text.parse().ok());
        at.is_some_and(|at| signing::verify(&[secret], headers, self.body.as_bytes(), at, TOLERANCE).is_ok())
    }
}

/// Tells whether a request is signed with a secret of the subscription, and if not, why.
///
/// The secrets are tried here and are not shown. A clock that is wrong, a body that was parsed and written again, another secret and what else
/// happens often are told apart. Nothing of the request is kept.
#[utoipa::path(
    post, path = "/subscriptions/{id}/signature-checks", tag = "secrets", operation_id = "checkSignature",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    request_body = CheckPayload,
    responses((status = 200, description = "What is to be thought of it.", body = CheckDocument))
)]
pub(crate) async fn check(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(subscription): Id,
    Draft(payload, unread): Draft<CheckPayload>,
) -> Result<Json<CheckDocument>, Problem> {
    let now = app.now();
    let request = unread.merge(read(payload, now))?;
    let look = async {
        let valid = app.store.sealed_secrets(&reseller.id, subscription, now).await?;
        let Some(valid) = valid else { return Ok(None) };
        let ended = app.store.ended_secrets(subscription, now).await?;
        Ok(Some((valid, ended)))
    };
    let sealed = http_api::by(reseller.deadline, ("the secrets", "read"), look).await?;
    let (sealed, ended) = sealed.ok_or_else(problems::no_subscription)?;
    let sealer = app.sealer()?;
    let mut secrets = Vec::with_capacity(sealed.len());
    for (id, sealed) in sealed {
        secrets.push((id, open(sealer, subscription, &sealed)?));
    }
    let ended: Vec<_> = ended
        .into_iter()
        .filter_map(|ended| Some((open_ended(sealer, subscription, &ended.sealed)?, ended)))
        .collect();
    let own = secrets.iter().map(|(_, secret)| secret);
    let is_own = own
        .chain(ended.iter().map(|(secret, _)| secret))
        .any(|secret| request.is_signed_with(secret));
    let others = if is_own {
        Vec::new()
    } else {
        others(&app, &reseller, subscription, now).await?
    };
    // It takes a second of computing at worst, which is not to be taken from other requests.
    // It goes on when the caller is gone, and takes the caller's turn for as long.
    let turn = reseller.clone();
    let judged = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        judge(&request, &secrets, &ended, &others)
    });
    let judged = judged.await;
    judged.map(Json).map_err(|error| {
        tracing::error!(error = error_chain(&error), "failed to check a signature");
        Problem::new(ProblemKind::INTERNAL, "the signature could not be checked")
    })
}

/// Another subscription of the reseller, and what it signs with.
struct Other {
    name: String,
    secrets: Vec<Secret>,
}

/// The other subscriptions of the reseller, and of no other, with the secrets that are valid.
async fn others(
    app: &App,
    reseller: &Reseller,
    subscription: Uuid,
    now: DateTime<Utc>,
) -> Result<Vec<Other>, Problem> {
    let look = async {
        let mut found = Vec::new();
        let views = app
            .store
            .list_subscriptions(&reseller.id, None, OTHERS_MAX + 1)
            .await?;
        for view in views.into_iter().filter(|view| view.id != subscription) {
            let sealed = app.store.sealed_secrets(&reseller.id, view.id, now).await?;
            found.push((view, sealed.unwrap_or_default()));
        }
        Ok(found)
    };
    let found = http_api::by(reseller.deadline, ("the secrets", "read"), look).await?;
    let sealer = app.sealer()?;
    let others = found.into_iter().map(|(view, sealed)| Other {
        secrets: sealed
            .iter()
            .filter_map(|(_, sealed)| open_ended(sealer, view.id, sealed))
            .collect(),
        name: if view.description.is_empty() {
            format!("{} ({})", view.url, view.id)
        } else {
            format!("{:?} ({}, {})", view.description, view.url, view.id)
        },
    });
    Ok(others.collect())
}

fn judge(
    request: &Request,
    secrets: &[(Uuid, Secret)],
    ended: &[(Secret, EndedSecret)],
    others: &[Other],
) -> CheckDocument {
    let texts: Vec<_> = secrets.iter().map(|(_, secret)| secret.reveal()).collect();
    let texts: Vec<&str> = texts.iter().map(|text| text.as_str()).collect();
    let headers = SignedHeaders::read(|name| request.header(name));
    let found = diagnose(&Evidence {
        secrets: &texts,
        headers,
        idempotency_key: request.header("idempotency-key"),
        content_length: request
            .header("content-length")
            .and_then(|length| length.parse().ok()),
        body: request.body.as_bytes(),
        now: request.now,
        tolerance: TOLERANCE,
    });
    let signed = found.verdict.as_ref().ok();
    let timestamp: Option<i64> = headers.timestamp.and_then(|text| text.parse().ok());
    let mut causes: Vec<CauseDocument> = found.causes.iter().map(CauseDocument::from).collect();
    if signed.is_none()
        && let Some(cause) = of_ended(request, ended).or_else(|| of_another(request, others))
    {
        // Untimely it is all the same; whatever else was found was a guess.
        causes.retain(|cause| matches!(cause.code, "too_old" | "too_new"));
        causes.push(cause);
    }
    CheckDocument {
        verdict: match &found.verdict {
            Ok(_) => "verified",
            Err(error) => error.code(),
        },
        secret_id: signed
            .and_then(|signed| secrets.get(signed.secret))
            .map(|(id, _)| *id),
        age_seconds: timestamp.map(|at| request.now.saturating_sub(at)),
        causes,
        signed_content: headers
            .id
            .zip(headers.timestamp)
            .map(|(id, at)| format!("{id}.{at}.{}", request.body)),
        secrets_tried: secrets.len(),
    }
}

/// Says of a request that it is signed with a secret that signs no more, as of the request's own time.
fn of_ended(request: &Request, ended: &[(Secret, EndedSecret)]) -> Option<CauseDocument> {
    let (_, ended) = ended.iter().find(|(secret, _)| request.is_signed_with(secret))?;
    let what = if ended.is_revoked {
        "was revoked"
    } else {
        "was replaced and ended"
    };
    let (made, end) = (words::time(ended.created_at), words::time(ended.ended_at));
    Some(CauseDocument {
        code: "ended_secret",
        text: format!("it is signed with the secret of {made} that {what} at {end}"),
        mend: "what is sent since then is signed with the secrets that are valid: have the notification sent again; a request from before that \
               time is genuine, unless others know the secret"
            .to_owned(),
    })
}

/// Says of a request that it is signed with a secret of another subscription of the reseller.
fn of_another(request: &Request, others: &[Other]) -> Option<CauseDocument> {
    let signs = |other: &&Other| other.secrets.iter().any(|secret| request.is_signed_with(secret));
    let other = others.iter().find(signs)?;
    Some(CauseDocument {
        code: "secret_of_another_subscription",
        text: format!(
            "it is signed with a secret of another subscription of yours: {}",
            other.name
        ),
        mend: "check it with the secrets of that subscription: each subscription signs with secrets of its own, also when several have the same URL"
            .to_owned(),
    })
}

fn read(payload: CheckPayload, now: DateTime<Utc>) -> Result<Request, Problem> {
    let mut errors = Vec::new();
    let headers: BTreeMap<String, String> = payload
        .headers
        .unwrap_or_default()
        .into_iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect();
    if headers.is_empty() {
        let detail = "must be an object with webhook-id, webhook-timestamp and webhook-signature";
        errors.push(FieldProblem::new("headers", detail).coded(FieldCode::Missing));
    }
    let body = payload.body.unwrap_or_else(|| {
        errors.push(FieldProblem::new("body", "must be the body as a string").coded(FieldCode::Missing));
        String::new()
    });
    if body.len() > BODY_MAX_BYTES {
        let detail = format!(
            "is {} bytes long, but may be at most {BODY_MAX_BYTES}; `postrider verify` checks longer ones",
            body.len()
        );
        errors.push(FieldProblem::new("body", detail).at_most(BODY_MAX_BYTES));
    }
    let recorded = || headers.get(signing::HEADER_TIMESTAMP)?.parse().ok();
    let at = match payload.at.as_deref() {
        None => Some(now.timestamp()),
        Some("recorded") => Some(recorded().unwrap_or_default()),
        Some(text) => text.parse::<DateTime<Utc>>().ok().map(|at| at.timestamp()),
    };
    if at.is_none() {
        let detail = "must be a time such as 2026-11-21T12:00:00Z, or recorded";
        errors.push(FieldProblem::new("at", detail).coded(FieldCode::WrongFormat));
    }
    match at {
        Some(now) if errors.is_empty() => Ok(Request { headers, body, now }),
        _ => Err(Problem::fields(errors)),
    }
}

//! R9: the secrets that sign, making and revoking them, and looking at one for a short while.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use domain::capability::Capability;
use http::{HeaderValue, header};
use http_api::{FieldProblem, Id, Ids, Payload, Problem};
use pages::{Fields, Page, done};
use store::webhook::VALID_SECRETS_MAX;
use uuid::Uuid;

use super::confirm::Confirm;
use super::frame::Frame;
use super::{Route, confirm, words};
use crate::app::App;
use crate::request::{Reseller, Revealer, Rotator};
use crate::secrets::{self, AnswersDocument, SecretDocument, SecretPayload};
use crate::subscriptions::SubscriptionDocument;

/// For how long a secret that was looked at stays on the screen.
const SHOWN_SECONDS: u32 = 30;

pub(super) fn routes() -> Vec<Route> {
    use super::{act, page as at};
    vec![
        at("/app/s/{id}/secrets", page),
        at("/app/s/{id}/secrets/rotate", ask_to_rotate),
        act("/app/s/{id}/secrets/rotate", rotate),
        act("/app/s/{id}/secrets/{secret}/reveal", reveal),
        at("/app/s/{id}/secrets/{secret}/revoke", ask_to_revoke),
        act("/app/s/{id}/secrets/{secret}/revoke", revoke),
    ]
}

#[derive(Template)]
#[template(path = "secrets.html")]
struct Secrets {
    frame: Frame,
    subscription: SubscriptionDocument,
    secrets: Vec<SecretDocument>,
    answers: AnswersDocument,
    /// Whether the installation shows a secret again.
    are_shown: bool,
}

impl Secrets {
    fn heading(&self) -> String {
        words::host(&self.subscription.url)
    }

    /// Who made it; of what was made long ago that is not known here.
    fn maker<'s>(&self, secret: &'s SecretDocument) -> &'s str {
        secret.created_by.as_deref().unwrap_or("–")
    }

    fn active(&self) -> usize {
        self.secrets.iter().filter(|secret| secret.active).count()
    }

    /// How many may be valid at a time, where so many are.
    fn full(&self) -> Option<u32> {
        let valid = u32::try_from(self.active()).unwrap_or(u32::MAX);
        (valid >= VALID_SECRETS_MAX).then_some(VALID_SECRETS_MAX)
    }

    /// When the last of those ends that were replaced and still sign.
    fn overlap_until(&self) -> Option<DateTime<Utc>> {
        let active = self.secrets.iter().filter(|secret| secret.active);
        active.filter_map(|secret| secret.expires_at).max()
    }

    /// Whether nothing could be signed without it, now or later.
    fn is_last(&self, secret: &SecretDocument) -> bool {
        let lasting = |secret: &&SecretDocument| secret.active && secret.expires_at.is_none();
        lasting(&secret) && self.secrets.iter().filter(lasting).count() == 1
    }

    /// What became of it.
    fn standing(&self, secret: &SecretDocument) -> &'static str {
        if secret.revoked_at.is_some() {
            "REVOKED"
        } else if secret.active {
            "ACTIVE"
        } else {
            "EXPIRED"
        }
    }

    /// The part of answers that say that who sends is not known or may not.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    fn refused_part(&self) -> String {
        words::percent(self.answers.refused as f64 / self.answers.attempts.max(1) as f64)
    }
}

#[derive(Template)]
#[template(path = "secret.html")]
struct Shown {
    frame: Frame,
    subscription: SubscriptionDocument,
    secret: String,
    /// Until when the ones before it sign along, where it is new.
    overlap_until: Option<DateTime<Utc>>,
    is_new: bool,
    seconds: u32,
}

impl Shown {
    fn heading(&self) -> String {
        words::host(&self.subscription.url)
    }
}

#[derive(Template)]
#[template(path = "rotate.html")]
struct Rotate {
    frame: Frame,
    subscription: SubscriptionDocument,
    may_choose: bool,
    /// As they were typed.
    overlap_hours: String,
    errors: Vec<FieldProblem>,
}

impl Rotate {
    fn heading(&self) -> String {
        words::host(&self.subscription.url)
    }

    fn wrong(&self, field: &str) -> Option<&str> {
        confirm::wrong(&self.errors, field)
    }
}

fn place(id: Uuid) -> String {
    format!("/app/s/{id}/secrets")
}

async fn page(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    let subscription = super::subscription(&app, &reseller, id).await?;
    let list = secrets::list(State(Arc::clone(&app)), reseller, Id(id)).await?.0;
    Ok(Page(Secrets {
        frame,
        subscription,
        secrets: list.items,
        answers: list.answers,
        are_shown: app.config.reseller.secrets.allow_viewing,
    }))
}

fn overlap(app: &App) -> TimeDelta {
    TimeDelta::from_std(app.config.reseller.secrets.overlap).unwrap_or(TimeDelta::zero())
}

async fn rotation(
    app: &Arc<App>,
    reseller: &Reseller,
    frame: Frame,
    (id, overlap_hours, errors): (Uuid, Option<String>, Vec<FieldProblem>),
) -> Result<Response, Problem> {
    let status = confirm::status(&errors);
    let page = Rotate {
        subscription: super::subscription(app, reseller, id).await?,
        overlap_hours: overlap_hours.unwrap_or_else(|| overlap(app).num_hours().to_string()),
        may_choose: app.config.reseller.secrets.allow_choosing,
        frame,
        errors,
    };
    Ok((status, Page(page)).into_response())
}

async fn ask_to_rotate(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    rotation(&app, &reseller, frame, (id, None, Vec::new())).await
}

/// Answers with the page that shows the secret, and leads nowhere: no other page shows it where looking is switched off.
async fn rotate(
    State(app): State<Arc<App>>,
    rotator: Rotator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let typed = fields.get("overlapHours").unwrap_or_default().to_owned();
    let overlap_hours = match fields.parse("overlapHours", "a number of hours") {
        Ok(hours) => hours,
        Err(problem) => {
            let errors = confirm::mendable(problem)?;
            return rotation(&app, &rotator, frame, (id, Some(typed), errors)).await;
        }
    };
    let payload = SecretPayload {
        secret: fields.get("secret").map(str::to_owned),
        overlap_hours,
    };
    let state = State(Arc::clone(&app));
    match secrets::rotate(state, rotator.clone(), Id(id), Some(Payload(payload))).await {
        Ok((_, _, made)) => {
            let page = Shown {
                subscription: super::subscription(&app, &rotator, id).await?,
                overlap_until: secrets::of(&app, &rotator, id)
                    .await?
                    .iter()
                    .filter(|secret| secret.active)
                    .filter_map(|secret| secret.expires_at)
                    .max(),
                secret: made.0.secret,
                is_new: true,
                seconds: 0,
                frame,
            };
            Ok(Page(page).into_response())
        }
        // What was typed may be a secret, so that it alone is not kept.
        Err(problem) => {
            let errors = confirm::mendable(problem)?;
            rotation(&app, &rotator, frame, (id, Some(typed), errors)).await
        }
    }
}

/// Shows a secret for a while; then the browser goes back by itself, with scripts and without.
async fn reveal(
    State(app): State<Arc<App>>,
    revealer: Revealer,
    frame: Frame,
    Ids(id, secret): Ids,
) -> Result<Response, Problem> {
    let (_, view) = secrets::view(State(Arc::clone(&app)), revealer.clone(), Ids(id, secret)).await?;
    let page = Shown {
        subscription: super::subscription(&app, &revealer, id).await?,
        secret: view.0.secret,
        overlap_until: None,
        is_new: false,
        seconds: SHOWN_SECONDS,
        frame,
    };
    let mut response = Page(page).into_response();
    let back = format!("{SHOWN_SECONDS};url={}", place(id));
    if let Ok(back) = HeaderValue::try_from(back) {
        response.headers_mut().insert(header::REFRESH, back);
    }
    Ok(response)
}

fn revocation(frame: &Frame, id: Uuid, secret: &SecretDocument) -> Confirm {
    let made = secret.created_at.with_timezone(&frame.preferences.zone);
    Confirm {
        id: "revoke",
        title: format!("Revoke the secret of {}", made.format("%a %-d %b %Y, %H:%M")),
        said: vec![
            "It signs nothing any more, at once. An endpoint that knows no other secret refuses what comes from then on.".to_owned(),
            "While several sign, no delivery tells which of them your endpoint knows. The check on the page New subscription, with the secret that \
             stays as your own, tells it and makes nothing."
                .to_owned(),
            "This cannot be undone.".to_owned(),
        ],
        action: format!("{}/{}/revoke", place(id), secret.id),
        back: place(id),
        button: "Revoke",
        is_dangerous: true,
        expected: None,
        needs: "secrets.rotate",
        may: frame.may(Capability::SecretsRotate),
        in_dialog: false,
        typed: None,
    }
}

async fn ask_to_revoke(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Ids(id, secret): Ids,
) -> Result<Response, Problem> {
    let secrets = secrets::of(&app, &reseller, id).await?;
    let found = secrets.iter().find(|known| known.id == secret);
    let found = found.ok_or_else(secrets::no_secret)?;
    Ok(revocation(&frame, id, found).page(frame))
}

async fn revoke(
    State(app): State<Arc<App>>,
    rotator: Rotator,
    Ids(id, secret): Ids,
) -> Result<Response, Problem> {
    secrets::revoke(State(app), rotator, Ids(id, secret)).await?;
    Ok(done(
        &place(id),
        "The secret is revoked: it signs nothing any more.",
    ))
}

//! R2: making a subscription.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::subscription::SubscriptionState;
use http_api::{Draft, FieldProblem, Problem, Wrong};
use pages::{Fields, Page};

use super::frame::Frame;
use super::subscription_form::{SubscriptionForm, offered};
use super::{Route, confirm, verify, words};
use crate::app::App;
use crate::endpoint_checks::{self, CheckDocument, CheckPayload, StepDocument};
use crate::problems::TOO_MANY_SUBSCRIPTIONS;
use crate::request::{Manager, Reseller};
use crate::sending_ips;
use crate::subscriptions::{self, SubscriptionDocument, create::CreatePayload};

const ADDRESS: &str = "/app/subscriptions/new";
const CHECK: &str = "/app/subscriptions/new/check";

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page(ADDRESS, page),
        super::act(ADDRESS, make),
        super::act(CHECK, check),
    ]
}

#[derive(Template)]
#[template(path = "new.html")]
struct New {
    frame: Frame,
    form: SubscriptionForm,
    /// Where requests come from.
    addresses: Vec<String>,
    /// How far a request to the endpoint got, if that was asked for.
    check: Option<CheckDocument>,
    /// Whether a secret of the person's own was typed. It is in no page, and has to be typed again to be used again.
    with_own_secret: bool,
    /// Those of which one has to be deleted first, the least needed first; none where there is room.
    full: Vec<SubscriptionDocument>,
}

impl New {
    fn place_of(&self, subscription: &SubscriptionDocument) -> String {
        words::place(&subscription.url)
    }

    fn step(&self, step: &StepDocument) -> &'static str {
        match step.step {
            "NAME" => "Name",
            "CONNECTION" => "Connection",
            "TLS" => "Certificate",
            "ANSWER" => "Answer",
            _ => "Challenge",
        }
    }

    /// Whether it may have failed for want of a secret that the endpoint knows: there is none before the subscription is made.
    fn lacks_secret(&self, check: &CheckDocument) -> bool {
        let mut steps = check.steps.iter();
        !self.with_own_secret && steps.any(|step| step.step == "ANSWER" && step.result == "FAILED")
    }

    /// Whether a subscription may be made with a secret of the person's own.
    fn may_choose(&self) -> bool {
        self.form.offered.limits.secrets_can_be_chosen
    }

    /// Whether its field is seen at once.
    fn asks_for_secret(&self) -> bool {
        self.with_own_secret || self.form.wrong("secret").is_some()
    }

    /// The word for a result and its looks.
    fn result(&self, step: &StepDocument) -> (&'static str, &'static str) {
        match step.result {
            "PASSED" => ("works", "ok"),
            "FAILED" => ("fails", "bad"),
            _ => ("not tried", ""),
        }
    }
}

async fn new(
    app: &Arc<App>,
    reseller: &Reseller,
    frame: Frame,
    (form, check, with_own_secret): (SubscriptionForm, Option<CheckDocument>, bool),
) -> Result<Response, Problem> {
    let status = confirm::status(&form.errors);
    let mut full = super::subscriptions_of(app, reseller).await?;
    if full.len() < app.config.reseller.subscription.maximum as usize {
        full.clear();
    }
    full.sort_by_key(|one| match one.state {
        SubscriptionState::Deactivated => 0,
        SubscriptionState::PendingVerification => 1,
        SubscriptionState::Degraded => 2,
        SubscriptionState::Active => 3,
    });
    let addresses = sending_ips::list(State(Arc::clone(app))).await.0.ips;
    let page = New {
        frame,
        form,
        addresses,
        check,
        with_own_secret,
        full,
    };
    Ok((status, Page(page)).into_response())
}

async fn page(State(app): State<Arc<App>>, reseller: Reseller, frame: Frame) -> Result<Response, Problem> {
    let offered = offered(&app, &reseller).await?;
    let form = SubscriptionForm::empty(offered, app.config.reseller.replay.after_outage);
    new(&app, &reseller, frame, (form, None, false)).await
}

/// Sends a challenge to the endpoint that was typed, and shows how far it got. What else was typed stays.
async fn check(
    State(app): State<Arc<App>>,
    manager: Manager,
    frame: Frame,
    fields: Fields,
) -> Result<Response, Problem> {
    let offered = offered(&app, &manager).await?;
    let mut form = SubscriptionForm::typed(&fields, offered);
    let secret = fields.get("secret").map(str::to_owned);
    let with_own_secret = secret.is_some();
    let payload = CheckPayload {
        url: Some(form.url.clone()),
        secret,
    };
    let draft = Draft(payload, Wrong::default());
    let checked = endpoint_checks::check(State(Arc::clone(&app)), manager.clone(), draft).await;
    let found = match checked {
        Ok(document) => Some(document.0),
        Err(problem) => {
            form.errors = confirm::mendable(problem)?;
            None
        }
    };
    new(&app, &manager, frame, (form, found, with_own_secret)).await
}

/// Makes it, and shows its secret, this once. It is challenged when its person asks for that: before, the endpoint could not know the secret.
async fn make(
    State(app): State<Arc<App>>,
    manager: Manager,
    frame: Frame,
    fields: Fields,
) -> Result<Response, Problem> {
    let offered = offered(&app, &manager).await?;
    let mut form = SubscriptionForm::typed(&fields, offered);
    let secret = fields.get("secret").map(str::to_owned);
    let with_own_secret = secret.is_some();
    let payload = CreatePayload {
        url: Some(form.url.clone()),
        event_types: Some(form.event_types.clone()),
        email: Some(form.email.clone()),
        description: Some(form.description.clone()),
        timeout_millis: form.timeout_millis(),
        secret,
        resend_after_outage: Some(form.resend_after_outage),
        retry_plan: form.retry_plan.parse().ok(),
        retry_client_errors: Some(form.retry_client_errors),
        verify_later: Some(true),
        daily_quota: None,
        requests_per_second: None,
    };
    let draft = Draft(payload, Wrong::default());
    match subscriptions::create(State(Arc::clone(&app)), manager.clone(), draft).await {
        Ok((_, _, created)) => return Ok(verify::made(frame, created.0)),
        // The page says which there are.
        Err(problem) if problem.kind() == TOO_MANY_SUBSCRIPTIONS => {
            form.errors = vec![FieldProblem::new("", problem.detail())];
        }
        Err(problem) => form.errors = confirm::mendable(problem)?,
    }
    new(&app, &manager, frame, (form, None, with_own_secret)).await
}

//! R2: making a subscription.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http_api::{Draft, Problem, Wrong};
use pages::{Fields, Page};

use super::frame::Frame;
use super::subscription_form::{SubscriptionForm, groups};
use super::{Route, confirm, verify};
use crate::app::App;
use crate::endpoint_checks::{self, CheckDocument, CheckPayload, StepDocument};
use crate::request::{Manager, Reseller};
use crate::sending_ips;
use crate::subscriptions::{self, create::CreatePayload};

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
}

impl New {
    fn step(&self, step: &StepDocument) -> &'static str {
        match step.step {
            "NAME" => "Name",
            "CONNECTION" => "Connection",
            "TLS" => "Certificate",
            "ANSWER" => "Answer",
            _ => "Challenge",
        }
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

async fn new(app: &Arc<App>, frame: Frame, form: SubscriptionForm, check: Option<CheckDocument>) -> Response {
    let status = confirm::status(&form.errors);
    let addresses = sending_ips::list(State(Arc::clone(app))).await.0.ips;
    let page = New {
        frame,
        form,
        addresses,
        check,
    };
    (status, Page(page)).into_response()
}

async fn page(State(app): State<Arc<App>>, reseller: Reseller, frame: Frame) -> Result<Response, Problem> {
    let groups = groups(&app, &reseller).await?;
    let form = SubscriptionForm::empty(groups, app.config.reseller.replay.after_outage);
    Ok(new(&app, frame, form, None).await)
}

/// Sends a challenge to the endpoint that was typed, and shows how far it got. What else was typed stays.
async fn check(
    State(app): State<Arc<App>>,
    manager: Manager,
    frame: Frame,
    fields: Fields,
) -> Result<Response, Problem> {
    let groups = groups(&app, &manager).await?;
    let mut form = SubscriptionForm::typed(&fields, groups);
    let payload = CheckPayload {
        url: Some(form.url.clone()),
        secret: None,
    };
    let draft = Draft(payload, Wrong::default());
    let checked = endpoint_checks::check(State(Arc::clone(&app)), manager, draft).await;
    let found = match checked {
        Ok(document) => Some(document.0),
        Err(problem) => {
            form.errors = confirm::mendable(problem)?;
            None
        }
    };
    Ok(new(&app, frame, form, found).await)
}

/// Makes it, and shows its secret, this once. It is challenged when its person asks for that: before, the endpoint could not know the secret.
async fn make(
    State(app): State<Arc<App>>,
    manager: Manager,
    frame: Frame,
    fields: Fields,
) -> Result<Response, Problem> {
    let groups = groups(&app, &manager).await?;
    let mut form = SubscriptionForm::typed(&fields, groups);
    let payload = CreatePayload {
        url: Some(form.url.clone()),
        event_types: Some(form.event_types.clone()),
        email: Some(form.email.clone()),
        description: Some(form.description.clone()),
        timeout_millis: form.timeout_millis(),
        secret: None,
        resend_after_outage: Some(form.resend_after_outage),
        retry_plan: form.retry_plan.parse().ok(),
        retry_client_errors: Some(form.retry_client_errors),
        verify_later: Some(true),
        daily_quota: None,
        requests_per_second: None,
    };
    let made =
        subscriptions::create(State(Arc::clone(&app)), manager, Draft(payload, Wrong::default())).await;
    match made {
        Ok((_, _, created)) => Ok(verify::made(frame, created.0)),
        Err(problem) => {
            form.errors = confirm::mendable(problem)?;
            Ok(new(&app, frame, form, None).await)
        }
    }
}

//! R2: making a subscription.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http_api::{Draft, Problem, Wrong};
use pages::{Fields, Page};

use super::frame::Frame;
use super::subscription_form::{SubscriptionForm, groups};
use super::{Route, confirm, verify};
use crate::app::App;
use crate::request::{Manager, Reseller};
use crate::sending_ips;
use crate::subscriptions::{self, create::CreatePayload};

const ADDRESS: &str = "/app/subscriptions/new";

pub(super) fn routes() -> Vec<Route> {
    vec![super::page(ADDRESS, page), super::act(ADDRESS, make)]
}

#[derive(Template)]
#[template(path = "new.html")]
struct New {
    frame: Frame,
    form: SubscriptionForm,
    /// Where requests come from.
    addresses: Vec<String>,
}

async fn new(app: &Arc<App>, frame: Frame, form: SubscriptionForm) -> Response {
    let status = if form.errors.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    let addresses = sending_ips::list(State(Arc::clone(app))).await.0.ips;
    let page = New {
        frame,
        form,
        addresses,
    };
    (status, Page(page)).into_response()
}

async fn page(State(app): State<Arc<App>>, reseller: Reseller, frame: Frame) -> Result<Response, Problem> {
    let groups = groups(&app, &reseller).await?;
    let form = SubscriptionForm::empty(groups, app.config.reseller.replay.after_outage);
    Ok(new(&app, frame, form).await)
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
            Ok(new(&app, frame, form).await)
        }
    }
}

//! `/console/mails`: what resellers are told by mail, why it was not sent, and sending it at once.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chrono::TimeDelta;
use http::StatusCode;
use http_api::{FieldProblem, Params, Payload, Problem, ProblemKind};

use super::frame::{Frame, Page, done};
use super::visit::Fields;
use crate::app::App;
use crate::examined::Part;
use crate::mails::{self, MailDocument, MailParams, RetryPayload};
use crate::request::{Operator, Viewer};

const HERE: &str = "/console/mails";
/// Since when failed mails are sent again, in hours, and in words.
const AGES: [(&str, &str); 4] = [
    ("1", "the last hour"),
    ("24", "the last 24 hours"),
    ("168", "the last 7 days"),
    ("672", "the last 28 days"),
];

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(HERE, get(page))
        .route("/console/mails/retry", get(ask_to_retry).post(retry))
}

/// The form to send mails at once, and what was typed into it.
#[derive(Default)]
struct RetryForm {
    failed: String,
    note: String,
    errors: Vec<FieldProblem>,
}

impl RetryForm {
    fn of(fields: &Fields, errors: Vec<FieldProblem>) -> Self {
        let typed = |name| fields.get(name).unwrap_or_default().to_owned();
        Self {
            failed: typed("failed"),
            note: typed("note"),
            errors,
        }
    }

    /// What is wrong with a field.
    fn wrong(&self, field: &str) -> Option<&str> {
        let mut errors = self.errors.iter();
        errors
            .find(|error| error.field == field)
            .map(|error| error.detail.as_str())
    }

    fn ages(&self) -> &'static [(&'static str, &'static str)] {
        &AGES
    }
}

#[derive(Template)]
#[template(path = "mails_retry.html")]
struct RetryPage {
    frame: Frame,
    form: RetryForm,
}

#[derive(Template)]
#[template(path = "mails.html")]
struct Mails {
    frame: Frame,
    status: String,
    /// Whether they wait, so that they come by when they are due.
    waits: bool,
    part: Part<MailDocument>,
    form: RetryForm,
}

impl Mails {
    fn tabs(&self) -> [(&'static str, &'static str); 4] {
        [
            ("PENDING", "Waiting"),
            ("SENDING", "Being sent"),
            ("SENT", "Sent"),
            ("FAILED", "Failed"),
        ]
    }

    fn kind(&self, name: &str) -> &'static str {
        kind(name)
    }
}

fn kind(name: &str) -> &'static str {
    match name {
        "RETRIES_EXHAUSTED" => "Notifications were given up",
        "STATE_CHANGED" => "The subscription's state changed",
        "VERIFICATION_FAILED" => "The endpoint did not answer its challenge",
        "DELIVERY_REFUSED" => "The endpoint refused notifications",
        "QUOTA_DECIDED" => "A quota request was decided",
        "ADDRESS_CONFIRMATION" => "The address is to be confirmed",
        "SECURITY_CHANGED" => "Endpoint, address or secrets changed",
        "DELIVERIES_RECOVERED" => "Given up notifications were sent again",
        _ => "Another occasion",
    }
}

async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Params(params): Params<MailParams>,
) -> Result<impl IntoResponse, Problem> {
    let status = params.status.clone().unwrap_or_else(|| "PENDING".to_owned());
    let part = mails::list(State(app), viewer, Params(params)).await?.0;
    let failed = if status == "FAILED" { "24" } else { "" };
    Ok(Page(Mails {
        frame,
        waits: status == "PENDING",
        status,
        part,
        form: RetryForm {
            failed: failed.to_owned(),
            ..RetryForm::default()
        },
    }))
}

async fn ask_to_retry(_: Viewer, frame: Frame) -> impl IntoResponse {
    let failed = frame.asked("failed");
    let form = RetryForm {
        failed,
        ..RetryForm::default()
    };
    Page(RetryPage { frame, form })
}

async fn retry(operator: Operator, frame: Frame, fields: Fields) -> Result<Response, Problem> {
    match send(operator, &fields).await {
        Ok(0) => Ok(done(
            HERE,
            "No mail waits or failed in that time. Nothing was changed.",
        )),
        Ok(mails) => {
            let mails = if mails == 1 {
                "1 mail is".to_owned()
            } else {
                format!("{} mails are", frame.number(mails))
            };
            Ok(done(
                HERE,
                &format!("{mails} due now. The retry worker sends them within seconds."),
            ))
        }
        Err(problem) if problem.kind() == ProblemKind::VALIDATION => {
            let form = RetryForm::of(&fields, problem.errors().to_vec());
            Ok((StatusCode::UNPROCESSABLE_ENTITY, Page(RetryPage { frame, form })).into_response())
        }
        Err(problem) => Err(problem),
    }
}

async fn send(operator: Operator, fields: &Fields) -> Result<u64, Problem> {
    let hours: Option<u16> = fields.parse("failed", "one of the choices")?;
    let payload = RetryPayload {
        failed_since: hours.map(|hours| operator.app.now() - TimeDelta::hours(hours.into())),
        note: fields.get("note").map(str::to_owned),
    };
    let Json(retried) = mails::retry(operator, Payload(payload)).await?;
    Ok(retried.mails)
}

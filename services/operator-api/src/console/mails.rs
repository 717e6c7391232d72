//! `/console/mails`: what resellers are told by mail, why it was not sent, and sending it at once.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chrono::TimeDelta;
use explain::words;
use http_api::{Params, Payload, Problem, ReadParams};

use super::act::{ActForm, Asked};
use super::export::{self, Column};
use super::frame::{Frame, Page, done, not_done};
use super::visit::Fields;
use crate::app::App;
use crate::examined::Part;
use crate::mails::{self, MailDocument, MailParams, RetryPayload};
use crate::request::{Operator, Viewer};
use crate::status::{self, MailsDocument};

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
        .route("/console/mails/export", get(export))
        .route("/console/mails/retry", get(ask_to_retry).post(retry))
}

/// How many mails there are, as the system is now; none while that cannot be found out.
async fn known(app: Arc<App>, viewer: Viewer) -> Option<MailsDocument> {
    status::status(State(app), viewer).await.0.mails
}

/// The form to send mails at once.
fn retry_form(frame: &Frame, failed: &str, known: Option<&MailsDocument>) -> ActForm {
    let number = known.map_or_else(
        || "How many mails wait could not be found out.".to_owned(),
        |mails| {
            let waiting = words::of(
                mails.waiting,
                "mail waits or is being sent",
                "mails wait or are being sent",
            );
            format!(
                "{waiting} now, and {} failed within a day.",
                words::number(mails.failed)
            )
        },
    );
    let none = (String::new(), "No, only those that wait".to_owned());
    let ages = AGES
        .iter()
        .map(|(hours, words)| ((*hours).to_owned(), format!("Of {words}")));
    ActForm {
        id: "retry".to_owned(),
        title: "Send mails at once".to_owned(),
        said: vec![
            number,
            "All mails that wait become due at once, at most 10,000. With failed ones they are sent again, at most 10,000 more; \
             those about given up, refused and recovered deliveries are gathered in the next mail instead. It cannot be undone."
                .to_owned(),
        ],
        button: "Send at once",
        fields: vec![Asked {
            name: "failed",
            label: "Failed mails too",
            value: failed.to_owned(),
            choices: std::iter::once(none).chain(ages).collect(),
            ..Asked::default()
        }],
        ..ActForm::new(frame, "/console/mails/retry".to_owned(), HERE.to_owned())
    }
}

#[derive(Template)]
#[template(path = "mails.html")]
struct Mails {
    frame: Frame,
    status: String,
    /// Whether they wait, so that they come by when they are due.
    waits: bool,
    part: Part<MailDocument>,
    forms: Vec<ActForm>,
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

    /// Where the list is as a file.
    fn file(&self, format: &str) -> String {
        export::link(&self.frame, "/console/mails/export", format)
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
    let part = mails::list(State(Arc::clone(&app)), viewer, ReadParams::of(params))
        .await?
        .0;
    let known = known(app, viewer).await;
    let failed = if status == "FAILED" { "24" } else { "" };
    Ok(Page(Mails {
        waits: status == "PENDING",
        status,
        part,
        forms: vec![retry_form(&frame, failed, known.as_ref()).in_dialog()],
        frame,
    }))
}

/// What a file of mails has.
const COLUMNS: [Column; 12] = [
    ("id", "/id"),
    ("kind", "/kind"),
    ("status", "/status"),
    ("resellerId", "/resellerId"),
    ("subscriptionId", "/subscriptionId"),
    ("recipient", "/recipient"),
    ("occurrences", "/occurrences"),
    ("attempts", "/attempts"),
    ("createdAt", "/createdAt"),
    ("nextAttemptAt", "/nextAttemptAt"),
    ("finishedAt", "/finishedAt"),
    ("lastError", "/lastError"),
];

/// The list as a file.
async fn export(State(app): State<Arc<App>>, _: Viewer, frame: Frame) -> Result<Response, Problem> {
    export::list(app, &frame, ("mails", &COLUMNS), mails::list).await
}

async fn ask_to_retry(State(app): State<Arc<App>>, viewer: Viewer, frame: Frame) -> Response {
    let failed = frame.asked("failed");
    let known = known(app, viewer).await;
    retry_form(&frame, &failed, known.as_ref()).page(frame)
}

async fn retry(operator: Operator, frame: Frame, fields: Fields) -> Result<Response, Problem> {
    let (app, viewer) = (Arc::clone(&operator.app), operator.viewer());
    match send(operator, &fields).await {
        Ok(0) => Ok(not_done(
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
        Err(problem) => {
            let known = known(app, viewer).await;
            retry_form(&frame, "", known.as_ref()).again(frame, &fields, problem)
        }
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

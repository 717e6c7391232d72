//! Cancelling one push or one notification: the form, as a page and inside of others, and the act.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use domain::lifecycle::Status;
use http_api::{Id, Params, Problem, ProblemKind};
use serde::Deserialize;
use uuid::Uuid;

use crate::app::App;
use crate::cancel::{self, CancelledDocument};
use crate::console::act::{ActForm, note};
use crate::console::frame::{Frame, done};
use crate::console::visit::{Fields, onward};
use crate::explain::tell;
use crate::request::{Operator, Viewer};

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/console/pushes/{id}/cancel", get(ask_push).post(cancel_push))
        .route(
            "/console/notifications/{id}/cancel",
            get(ask_notification).post(cancel_notification),
        )
}

/// Where the acts on one push or notification are.
pub(in crate::console) fn place_of(kind: &str, id: Uuid) -> String {
    let plural = if kind == "push" { "pushes" } else { "notifications" };
    format!("/console/{plural}/{id}")
}

/// What the form of an act says of the push or notification that it is about.
pub(in crate::console) async fn subject_of(
    app: &App,
    viewer: Viewer,
    (kind, id): (&str, Uuid),
) -> Result<String, Problem> {
    let (_, story) = tell(app, viewer.deadline, &id.to_string(), None).await?;
    if story.kind != kind {
        return Err(Problem::new(
            ProblemKind::NOT_FOUND,
            format!("no {kind} has this identifier"),
        ));
    }
    Ok(format!("One {kind}: {id}, {}. {}", story.state, story.headline))
}

/// The form to cancel one push or notification.
pub(in crate::console) fn cancel_form(
    (kind, id): (&'static str, Uuid),
    subject: String,
    back: String,
    in_dialog: bool,
    frame: &Frame,
) -> ActForm {
    let (again, delivered) = if kind == "push" {
        ("no replay sends it", "")
    } else {
        (
            "neither its reseller nor a replay sends it",
            " If it had been delivered and waits to be sent again, it stays delivered.",
        )
    };
    let effect = format!(
        "It ends as given up, and {again}: this cannot be undone. Its dead letter is discarded from the beginning, with your note.{delivered}"
    );
    ActForm {
        id: format!("cancel-{id}"),
        title: format!("Cancel the {kind}"),
        said: vec![subject, effect],
        button: if kind == "push" {
            "Cancel the push"
        } else {
            "Cancel the notification"
        },
        is_dangerous: true,
        in_dialog,
        ..ActForm::new(frame, format!("{}/cancel", place_of(kind, id)), back)
    }
}

/// Where a form was opened.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Opened {
    back: Option<String>,
}

fn back_to(given: Option<&str>, id: Uuid) -> String {
    given.map_or_else(|| format!("/console/explain/{id}"), |back| onward(Some(back)))
}

async fn ask_push(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
    Params(opened): Params<Opened>,
) -> Result<Response, Problem> {
    ask(&app, viewer, frame, ("push", id), &opened).await
}

async fn ask_notification(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
    Params(opened): Params<Opened>,
) -> Result<Response, Problem> {
    ask(&app, viewer, frame, ("notification", id), &opened).await
}

async fn ask(
    app: &App,
    viewer: Viewer,
    frame: Frame,
    (kind, id): (&'static str, Uuid),
    opened: &Opened,
) -> Result<Response, Problem> {
    let subject = subject_of(app, viewer, (kind, id)).await?;
    let form = cancel_form(
        (kind, id),
        subject,
        back_to(opened.back.as_deref(), id),
        false,
        &frame,
    );
    Ok(form.page(frame))
}

async fn cancel_push(
    operator: Operator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let answer = cancel::push(operator, Id(id), note(&fields)).await;
    cancelled(frame, ("push", id), &fields, answer)
}

async fn cancel_notification(
    operator: Operator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let answer = cancel::notification(operator, Id(id), note(&fields)).await;
    cancelled(frame, ("notification", id), &fields, answer)
}

fn cancelled(
    frame: Frame,
    (kind, id): (&'static str, Uuid),
    fields: &Fields,
    answer: Result<Json<CancelledDocument>, Problem>,
) -> Result<Response, Problem> {
    let back = back_to(fields.get("back"), id);
    match answer {
        Ok(Json(CancelledDocument { status, previous, .. })) => {
            let will_be = if status == Status::Sent.as_str() {
                "It will not be sent again, and stays delivered."
            } else {
                "It will not be sent."
            };
            let said = format!("The {kind} {id} was cancelled; it was {previous} before. {will_be}");
            Ok(done(&back, &said))
        }
        Err(problem) => {
            let form = cancel_form((kind, id), format!("One {kind}: {id}."), back, false, &frame);
            form.again(frame, fields, problem)
        }
    }
}

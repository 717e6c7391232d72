//! The form of an act on one thing: a page of its own, and the same in a dialog of a page that offers it.

use askama::Template;
use askama::filters::HtmlSafe;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use http_api::{FieldProblem, Payload, Problem, ProblemKind};

use super::frame::{Frame, Page};
use super::visit::Fields;
use crate::note::{Note, NotePayload};

/// A form that says what an act is done to and what it does, and asks why.
#[derive(Template)]
#[template(path = "act_form.html")]
pub(super) struct ActForm {
    /// Tells the form from others on a page.
    pub(super) id: String,
    pub(super) title: String,
    /// Number, target, effect, and whether it can be undone.
    pub(super) said: Vec<String>,
    /// Where it is sent to with `POST`; with `GET` there is a page with the same form.
    pub(super) action: String,
    /// Where cancelling leads, and the act when it is done.
    pub(super) back: String,
    pub(super) button: &'static str,
    pub(super) is_dangerous: bool,
    pub(super) needs_note: bool,
    /// What has to be typed.
    pub(super) expected: Option<&'static str>,
    /// Whether it stands in a dialog.
    pub(super) in_dialog: bool,
    pub(super) may: bool,
    pub(super) typed_name: String,
    pub(super) typed_note: String,
    pub(super) errors: Vec<FieldProblem>,
}

impl HtmlSafe for ActForm {}

#[derive(Template)]
#[template(path = "act.html")]
struct ActPage {
    frame: Frame,
    form: ActForm,
}

impl ActForm {
    /// What is wrong with a field.
    fn wrong(&self, field: &str) -> Option<&str> {
        let mut errors = self.errors.iter();
        errors
            .find(|error| error.field == field)
            .map(|error| error.detail.as_str())
    }

    /// The form as a page.
    pub(super) fn page(self, frame: Frame) -> Response {
        let status = if self.errors.is_empty() {
            StatusCode::OK
        } else {
            StatusCode::UNPROCESSABLE_ENTITY
        };
        (status, Page(ActPage { frame, form: self })).into_response()
    }

    /// The form again with what was typed, when that is what is wrong, or when the same may succeed later or after a look at how things are
    /// now; any other problem as it is.
    pub(super) fn again(
        mut self,
        frame: Frame,
        fields: &Fields,
        problem: Problem,
    ) -> Result<Response, Problem> {
        let status = problem.kind().status();
        let is_kept = matches!(status, StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE);
        if problem.kind() != ProblemKind::VALIDATION && !is_kept {
            return Err(problem);
        }
        let typed = |name| fields.get(name).unwrap_or_default().to_owned();
        (self.typed_name, self.typed_note) = (typed("name"), typed("note"));
        self.errors = problem.errors().to_vec();
        if is_kept {
            // Of no field.
            self.errors = vec![FieldProblem::new("", problem.detail().to_owned())];
        }
        let mut response = self.page(frame);
        *response.status_mut() = status;
        if let Some(seconds) = problem.into_response().headers_mut().remove(header::RETRY_AFTER) {
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        Ok(response)
    }
}

/// The note of a form, as the API takes it.
pub(super) fn note(fields: &Fields) -> Note {
    let note = fields.get("note").map(str::to_owned);
    Payload(NotePayload { note })
}

/// Whether the name was typed that an act is done to.
pub(super) fn typed(fields: &Fields, expected: &str) -> Result<(), Problem> {
    if fields.get("name") == Some(expected) {
        return Ok(());
    }
    let wrong = FieldProblem::new(
        "name",
        format!("must be {expected}: type it, so that it is no other one by mistake"),
    );
    Err(Problem::fields(vec![wrong]))
}

//! The form of an act that is asked about first: a page of its own, and the same in a dialog of a page that offers it.

use askama::Template;
use askama::filters::HtmlSafe;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http_api::{FieldProblem, Problem};
use pages::{Fields, Page};

use super::frame::Frame;

/// A form that says what an act is done to and what it does.
#[derive(Template)]
#[template(path = "confirm_form.html")]
pub(super) struct Confirm {
    /// Tells the form from others on a page.
    pub(super) id: &'static str,
    pub(super) title: String,
    /// Number, target, effect, and whether it can be undone.
    pub(super) said: Vec<String>,
    /// Where it is sent to with `POST`; with `GET` there is a page with the same form.
    pub(super) action: String,
    /// Where cancelling leads.
    pub(super) back: String,
    /// None where there is nothing to do it to.
    pub(super) button: &'static str,
    pub(super) is_dangerous: bool,
    /// What has to be typed.
    pub(super) expected: Option<String>,
    /// The capability that it needs.
    pub(super) needs: &'static str,
    pub(super) may: bool,
    /// Whether it stands in a dialog.
    pub(super) in_dialog: bool,
    /// What was typed and is wrong.
    pub(super) typed: Option<String>,
}

impl HtmlSafe for Confirm {}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    frame: Frame,
    form: Confirm,
}

impl Confirm {
    /// The form as a page.
    pub(super) fn page(self, frame: Frame) -> Response {
        let status = if self.typed.is_some() {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::OK
        };
        (status, Page(ConfirmPage { frame, form: self })).into_response()
    }

    /// The same form in a dialog.
    pub(super) fn in_dialog(mut self) -> Self {
        self.in_dialog = true;
        self
    }

    /// Whether what has to be typed was.
    pub(super) fn check(&mut self, fields: &Fields) -> bool {
        let typed = fields.get("name");
        let is_right = self
            .expected
            .as_deref()
            .is_none_or(|expected| typed == Some(expected));
        if !is_right {
            self.typed = Some(typed.unwrap_or_default().to_owned());
        }
        is_right
    }
}

/// The status of a page with a form in which this is wrong.
pub(super) fn status(errors: &[FieldProblem]) -> StatusCode {
    if errors.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    }
}

/// What is wrong with a field.
pub(super) fn wrong<'e>(errors: &'e [FieldProblem], field: &str) -> Option<&'e str> {
    let mut errors = errors.iter();
    let found = errors.find(|error| {
        let name: &str = &error.field;
        name == field || name.strip_prefix(field).is_some_and(|rest| rest.starts_with('['))
    });
    found.map(|error| error.detail.as_str())
}

/// The fields of a problem that a form can mend; any other problem as it is.
pub(super) fn mendable(problem: Problem) -> Result<Vec<FieldProblem>, Problem> {
    if problem.errors().is_empty() {
        Err(problem)
    } else {
        Ok(problem.errors().to_vec())
    }
}

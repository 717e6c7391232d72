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
    /// A dangerous act always needs a note.
    pub(super) is_dangerous: bool,
    /// Whether another one does.
    pub(super) needs_note: bool,
    /// What has to be typed.
    pub(super) expected: Option<String>,
    /// What is asked for beside the note.
    pub(super) fields: Vec<Asked>,
    /// Whether it stands in a dialog.
    pub(super) in_dialog: bool,
    pub(super) may: bool,
    /// The role that the act needs.
    pub(super) role: &'static str,
    pub(super) typed_name: String,
    pub(super) typed_note: String,
    pub(super) errors: Vec<FieldProblem>,
}

impl HtmlSafe for ActForm {}

/// A field of a form beside its note.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// What is to be known of it; nothing is said where it is empty.
    pub(super) hint: String,
    pub(super) value: String,
    /// What it held when the form was shown: sent along where only what is changed counts.
    pub(super) shown: Option<String>,
    /// What can be chosen: a value and its words. Where there is nothing to choose, text is typed.
    pub(super) choices: Vec<(String, String)>,
    /// Whether several can be chosen, as words of `value` with blanks between them.
    pub(super) is_several: bool,
    /// Whether it is of use only where scripts run, and shown only there.
    pub(super) needs_script: bool,
}

impl Asked {
    fn has(&self, value: &str) -> bool {
        match self.is_several {
            true => self.value.split_whitespace().any(|word| word == value),
            false => self.value == value,
        }
    }
}

#[derive(Template)]
#[template(path = "act.html")]
struct ActPage {
    frame: Frame,
    form: ActForm,
}

impl ActForm {
    /// A form for operators that asks for nothing but a note, which may be left out.
    pub(super) fn new(frame: &Frame, action: String, back: String) -> Self {
        Self {
            id: "act".to_owned(),
            title: String::new(),
            said: Vec::new(),
            action,
            back,
            button: "",
            is_dangerous: false,
            needs_note: false,
            expected: None,
            fields: Vec::new(),
            in_dialog: false,
            may: frame.may_operate,
            role: "operator",
            typed_name: String::new(),
            typed_note: String::new(),
            errors: Vec::new(),
        }
    }

    /// The same for administrators.
    pub(super) fn of_administrators(self, frame: &Frame) -> Self {
        Self {
            may: frame.may_administer,
            role: "admin",
            ..self
        }
    }

    /// The same in a dialog.
    pub(super) fn in_dialog(self) -> Self {
        Self {
            in_dialog: true,
            ..self
        }
    }

    /// How a field is called where it is said what is wrong with it.
    fn called(&self, field: &str) -> String {
        let asked = self.fields.iter().find(|asked| asked.name == field);
        match (field, asked) {
            ("name", None) => "The name".to_owned(),
            (_, Some(asked)) => format!("{}:", asked.label),
            (_, None) => "The note".to_owned(),
        }
    }

    fn asks_why(&self) -> bool {
        self.is_dangerous || self.needs_note
    }

    /// What is wrong with a field.
    fn wrong(&self, field: &str) -> Option<&str> {
        let mut errors = self.errors.iter();
        errors
            .find(|error| error.field == field)
            .map(|error| error.detail.as_str())
    }

    /// The form as a page.
    pub(super) fn page(self, frame: Frame) -> Response {
        Page(ActPage { frame, form: self }).into_response()
    }

    /// The form again with what was typed, when that is what is wrong, or when the same may succeed later or after a look at how things are
    /// now; any other problem as it is.
    pub(super) fn again(self, frame: Frame, fields: &Fields, problem: Problem) -> Result<Response, Problem> {
        let (form, problem) = self.filled(fields, problem)?;
        Ok(answered(form.page(frame), problem))
    }

    /// As [`Self::again`], for a page that shows the form among other things: see [`answered`].
    pub(super) fn filled(mut self, fields: &Fields, problem: Problem) -> Result<(Self, Problem), Problem> {
        let status = problem.kind().status();
        let is_kept = matches!(status, StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE);
        if problem.kind() != ProblemKind::VALIDATION && !is_kept {
            return Err(problem);
        }
        let typed = |name: &str| fields.get(name).unwrap_or_default().to_owned();
        (self.typed_name, self.typed_note) = (typed("name"), typed("note"));
        for asked in &mut self.fields {
            asked.value = fields.all(asked.name).join(" ");
            if let Some(shown) = &mut asked.shown {
                *shown = typed(&shown_name(asked.name));
            }
        }
        self.errors = problem.errors().to_vec();
        if is_kept {
            // Of no field.
            self.errors = vec![FieldProblem::new("", problem.detail().to_owned())];
        }
        Ok((self, problem))
    }
}

/// Whether a field holds what it held when the form was shown.
pub(super) fn is_as_shown(fields: &Fields, name: &str) -> bool {
    fields.get(name) == fields.get(&shown_name(name))
}

fn shown_name(name: &str) -> String {
    format!("shown-{name}")
}

/// The page of a form as the answer to what was wrong with it.
pub(super) fn answered(page: impl IntoResponse, problem: Problem) -> Response {
    let mut response = page.into_response();
    *response.status_mut() = problem.kind().status();
    if let Some(seconds) = problem.into_response().headers_mut().remove(header::RETRY_AFTER) {
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    response
}

/// The note of a form, as the API takes it.
pub(super) fn note(fields: &Fields) -> Note {
    let note = fields.get("note").map(str::to_owned);
    Payload(NotePayload { note })
}

/// The note of a form that needs one where the API does without: what the API takes it goes on to take, and a person can always say why.
pub(super) fn needed_note(fields: &Fields) -> Result<Note, Problem> {
    let note = note(fields);
    note.0.required()?;
    Ok(note)
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

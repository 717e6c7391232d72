//! Pages under `/console/dead-letters`: dead letters in groups, in a list, and one by one. What is done about many of them at once is in the
//! module of jobs.

mod cause;
mod chosen;
mod groups;
mod list;
mod one;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::StatusCode;
use http_api::Problem;

pub(super) use cause::cause;
pub(super) use chosen::{AGES, Chosen, moment};

use super::frame::{Frame, Page};
use super::visit::Fields;
use crate::app::App;

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/console/dead-letters", get(groups::page))
        .route("/console/dead-letters/list", get(list::page))
        .route("/console/dead-letters/{id}", get(one::page))
        .route(
            "/console/dead-letters/{id}/replay",
            get(one::replay_form).post(one::replay),
        )
        .route(
            "/console/dead-letters/{id}/discard",
            get(one::discard_form).post(one::discard),
        )
}

/// What is done with a note, as its form says it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deed {
    /// The last part of its address.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What comes of it, and whether it can be undone.
    pub(super) effect: &'static str,
    pub(super) button: &'static str,
    /// The class of its button.
    pub(super) tone: &'static str,
    pub(super) needs_note: bool,
}

/// The form of a deed by itself.
#[derive(Template)]
#[template(path = "deed.html")]
pub(super) struct DeedPage {
    frame: Frame,
    deed: Deed,
    /// The address of what it is done to.
    path: String,
    /// What that is, in a sentence.
    about: String,
    note: String,
    problem: Option<String>,
}

impl DeedPage {
    pub(super) fn new(frame: Frame, deed: Deed, path: String, about: String) -> Self {
        Self {
            frame,
            deed,
            path,
            about,
            note: String::new(),
            problem: None,
        }
    }

    /// The form with what was typed, when it was the note that could not be accepted.
    pub(super) fn again(
        frame: Frame,
        deed: Deed,
        path: String,
        fields: &Fields,
        problem: Problem,
    ) -> Result<Response, Problem> {
        let Some(wrong) = problem.errors().iter().find(|wrong| wrong.field == "note") else {
            return Err(problem);
        };
        let page = Self {
            note: fields.get("note").unwrap_or_default().to_owned(),
            problem: Some(wrong.detail.clone()),
            ..Self::new(frame, deed, path, String::new())
        };
        Ok((StatusCode::UNPROCESSABLE_ENTITY, Page(page)).into_response())
    }
}

/// The views of what a filter chooses: address, name, and whether it is this one.
fn tabs(chosen: &Chosen, here: &str) -> [(String, &'static str, bool); 3] {
    [
        (
            chosen.link("/console/dead-letters", &[]),
            "By cause",
            here == "cause",
        ),
        (
            chosen.link("/console/dead-letters", &[("by", "endpoint")]),
            "By endpoint",
            here == "endpoint",
        ),
        (
            chosen.link("/console/dead-letters/list", &[]),
            "All, newest first",
            here == "list",
        ),
    ]
}

//! `/console/dead-letters/{id}`: one dead letter, with everything that is known of what it is about.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use explain::Explanation;
use http_api::{Id, Params, Payload, Problem};
use uuid::Uuid;

use super::{Chosen, Deed, DeedPage};
use crate::app::App;
use crate::console::frame::{Frame, Page, done};
use crate::console::visit::Fields;
use crate::dead_letters::{self, DetailsDocument};
use crate::explain::{self as story, ExplainQuery};
use crate::note::NotePayload;
use crate::request::{Operator, Viewer};
use crate::resolve;

const REPLAY: Deed = Deed {
    name: "replay",
    title: "Replay the dead letter",
    effect: "What it is about becomes due again, with all of its attempts ahead, and is sent within moments. Its other open dead letters are \
             closed with it. This cannot be undone; what fails again gets another dead letter.",
    button: "Replay",
    tone: "primary",
    needs_note: false,
};

const DISCARD: Deed = Deed {
    name: "discard",
    title: "Discard the dead letter",
    effect: "It is put aside, and nothing is sent: what it is about stays as it ended. This cannot be undone.",
    button: "Discard",
    tone: "danger",
    needs_note: true,
};

#[derive(Template)]
#[template(path = "dead_letter.html")]
struct DeadLetter {
    frame: Frame,
    details: DetailsDocument,
    story: Explanation,
    /// Those of the same kind and place, where a filter can say that.
    alike: Option<Chosen>,
    path: String,
    deeds: [Deed; 2],
    /// What the note of the form says.
    note: String,
}

impl DeadLetter {
    /// The headers of what the broker handed back, each as JSON but for text.
    fn headers(&self) -> Vec<(&str, String)> {
        let headers = self
            .details
            .broker
            .as_ref()
            .and_then(|broker| broker.headers.as_object());
        let pairs = headers.into_iter().flatten();
        pairs
            .map(|(name, value)| {
                (
                    name.as_str(),
                    value.as_str().map_or_else(|| value.to_string(), str::to_owned),
                )
            })
            .collect()
    }
}

fn path(id: Uuid) -> String {
    format!("/console/dead-letters/{id}")
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    let deadline = viewer.deadline;
    let details = dead_letters::show(State(Arc::clone(&app)), viewer, Id(id))
        .await?
        .0;
    let query = Params(ExplainQuery { reseller: None });
    let story = story::explain(State(app), Viewer { deadline }, Path(id.to_string()), query)
        .await?
        .0;
    let letter = &details.letter;
    let alike = Chosen::default().with("lane", letter.lane.as_str());
    let alike = alike
        .with("fingerprint", &letter.fingerprint)
        .with("target", &letter.target);
    // At its end an asterisk stands for anything.
    let has_name = !letter.fingerprint.is_empty() && !letter.fingerprint.ends_with('*');
    let alike = Some(alike).filter(|_| has_name);
    Ok(Page(DeadLetter {
        alike,
        path: path(id),
        deeds: [REPLAY, DISCARD],
        note: String::new(),
        frame,
        details,
        story,
    }))
}

/// The form alone, for browsers without scripts.
async fn form(
    app: Arc<App>,
    viewer: Viewer,
    frame: Frame,
    id: Uuid,
    deed: Deed,
) -> Result<Response, Problem> {
    let letter = dead_letters::show(State(app), viewer, Id(id)).await?.0.letter;
    let about = format!("{} {}: {}", letter.fingerprint, letter.target, letter.detail);
    Ok(Page(DeedPage::new(frame, deed, path(id), about)).into_response())
}

pub(super) async fn replay_form(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    form(app, viewer, frame, id, REPLAY).await
}

pub(super) async fn discard_form(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    form(app, viewer, frame, id, DISCARD).await
}

fn body(fields: &Fields) -> Payload<NotePayload> {
    Payload(NotePayload {
        note: fields.get("note").map(str::to_owned),
    })
}

pub(super) async fn replay(
    operator: Operator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    match resolve::replay(operator, Id(id), body(&fields)).await {
        Ok(_) => Ok(done(
            &path(id),
            "The dead letter was replayed. What it is about is due again and is sent within moments.",
        )),
        Err(problem) => DeedPage::again(frame, REPLAY, path(id), &fields, problem),
    }
}

pub(super) async fn discard(
    operator: Operator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    match resolve::discard(operator, Id(id), body(&fields)).await {
        Ok(_) => Ok(done(&path(id), "The dead letter was discarded. Nothing is sent.")),
        Err(problem) => DeedPage::again(frame, DISCARD, path(id), &fields, problem),
    }
}

//! `/console/dead-letters/{id}`: one dead letter, with everything that is known of what it is about.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use explain::{Explanation, Line};
use http_api::{Id, Name, Params, Problem};
use store::DeadLetterView;
use uuid::Uuid;

use super::Chosen;
use crate::app::App;
use crate::console::act::{ActForm, note};
use crate::console::frame::{Frame, Markup, Page, done};
use crate::console::search::{linked, tone};
use crate::console::trace;
use crate::console::visit::{Fields, onward};
use crate::dead_letters::{self, AttemptDocument, DetailsDocument};
use crate::explain::{self as story, ExplainQuery};
use crate::request::{Operator, Viewer};
use crate::resolve;

#[derive(Template)]
#[template(path = "dead_letter.html")]
struct DeadLetter {
    frame: Frame,
    details: DetailsDocument,
    trace: Option<Markup>,
    story: Explanation,
    /// Those of the same kind and place, where a filter can say that.
    alike: Option<Chosen>,
    forms: Vec<ActForm>,
}

impl DeadLetter {
    /// A sentence of the story, as the page of a story writes it.
    fn linked(&self, text: &str) -> Markup {
        linked(text, &self.frame)
    }

    fn tone(&self, line: &Line) -> &'static str {
        tone(line)
    }

    /// What was answered to an attempt, if anything was.
    fn answer(&self, attempt: &AttemptDocument) -> Option<Markup> {
        let text = attempt.response.as_ref().filter(|text| !text.is_empty())?;
        let number = attempt.number;
        let label = format!("Answer of attempt {number}");
        Some(self.frame.folded(text, format!("answered-{number}"), label))
    }

    /// What is another with an attempt than with the one before: the name, what it was and what it is.
    fn changes(&self, place: &usize) -> Vec<(&'static str, String, String)> {
        let attempts = self.details.history.as_ref().map(|history| &history.attempts);
        let pair = attempts.zip(place.checked_sub(1));
        let pair = pair.and_then(|(attempts, before)| Some((attempts.get(before)?, attempts.get(*place)?)));
        let Some((before, now)) = pair else {
            return Vec::new();
        };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let number = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
        let [was, is] = [before, now].map(|attempt| attempt.response_status.map(i64::from));
        let all = [
            ("address", text(&before.url), text(&now.url)),
            ("status", number(was), number(is)),
            ("code", number(before.own_code()), number(now.own_code())),
            ("kind", text(&before.error_type), text(&now.error_type)),
            ("error", text(&before.error), text(&now.error)),
            ("answer", text(&before.response), text(&now.response)),
        ];
        all.into_iter().filter(|(_, was, is)| was != is).collect()
    }

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
    let details = dead_letters::show(State(Arc::clone(&app)), viewer, Id(id))
        .await?
        .0;
    let trace = details.trace_id.as_deref();
    let trace = trace.map(|trace| trace::shown(&app.config, trace));
    let query = Params(ExplainQuery { reseller: None });
    let story = story::explain(State(app), viewer, Name(id.to_string()), query)
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
    let forms = if letter.resolved_at.is_none() {
        vec![
            replay_form(letter, path(id), &frame).in_dialog(),
            discard_form(letter, path(id), &frame).in_dialog(),
        ]
    } else {
        Vec::new()
    };
    Ok(Page(DeadLetter {
        alike,
        forms,
        frame,
        details,
        trace,
        story,
    }))
}

/// What a dead letter is, in a sentence.
fn said(letter: &DeadLetterView) -> String {
    let about = match (letter.push, letter.notification) {
        (Some(push), _) => format!("the push {push}"),
        (None, Some(notification)) => format!("the notification {notification}"),
        (None, None) => "a message".to_owned(),
    };
    format!("One dead letter: {}, about {about}. {}", letter.id, letter.detail)
}

/// The form to replay a dead letter.
pub(in crate::console) fn replay_form(letter: &DeadLetterView, back: String, frame: &Frame) -> ActForm {
    ActForm {
        id: "replay".to_owned(),
        title: "Replay the dead letter".to_owned(),
        said: vec![
            said(letter),
            "What it is about becomes due again, with all of its attempts ahead, and is sent within moments. Its other open \
             dead letters are closed with it. What is sent cannot be undone; until it is, it can be cancelled. What fails \
             again gets another dead letter."
                .to_owned(),
        ],
        button: "Replay",
        ..ActForm::new(frame, format!("{}/replay", path(letter.id)), back)
    }
}

fn discard_form(letter: &DeadLetterView, back: String, frame: &Frame) -> ActForm {
    ActForm {
        id: "discard".to_owned(),
        title: "Discard the dead letter".to_owned(),
        said: vec![
            said(letter),
            "It is put aside, and nothing is sent: what it is about stays as it ended. This cannot be undone.".to_owned(),
        ],
        button: "Discard",
        is_dangerous: true,
        ..ActForm::new(frame, format!("{}/discard", path(letter.id)), back)
    }
}

type Form = fn(&DeadLetterView, String, &Frame) -> ActForm;

async fn form(
    app: Arc<App>,
    viewer: Viewer,
    frame: &Frame,
    id: Uuid,
    form: Form,
) -> Result<ActForm, Problem> {
    let letter = dead_letters::show(State(app), viewer, Id(id)).await?.0.letter;
    Ok(form(&letter, path(id), frame))
}

pub(super) async fn ask_to_replay(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    Ok(form(app, viewer, &frame, id, replay_form).await?.page(frame))
}

pub(super) async fn ask_to_discard(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    Ok(form(app, viewer, &frame, id, discard_form).await?.page(frame))
}

/// Where an act leads when it is done: to where its form was.
fn back_to(fields: &Fields, id: Uuid) -> String {
    fields
        .get("back")
        .map_or_else(|| path(id), |back| onward(Some(back)))
}

pub(super) async fn replay(
    operator: Operator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    const SAID: &str =
        "The dead letter was replayed. What it is about is due again and is sent within moments.";
    let (app, viewer) = (Arc::clone(&operator.app), operator.viewer());
    match resolve::replay(operator, Id(id), note(&fields)).await {
        Ok(_) => Ok(done(&back_to(&fields, id), SAID)),
        Err(problem) => {
            let form = form(app, viewer, &frame, id, replay_form).await?;
            form.again(frame, &fields, problem)
        }
    }
}

pub(super) async fn discard(
    operator: Operator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let (app, viewer) = (Arc::clone(&operator.app), operator.viewer());
    match resolve::discard(operator, Id(id), note(&fields)).await {
        Ok(_) => Ok(done(
            &back_to(&fields, id),
            "The dead letter was discarded. Nothing is sent.",
        )),
        Err(problem) => {
            let form = form(app, viewer, &frame, id, discard_form).await?;
            form.again(frame, &fields, problem)
        }
    }
}

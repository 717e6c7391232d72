//! `/console/pauses`: what operators have stopped, what waits for that, and letting it go on.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chrono::{DateTime, TimeDelta, Utc};
use explain::words::{self, time};
use http_api::{FieldProblem, Payload, Problem, TakesBodies as _};
use store::PauseView;
use store::status::PAUSED_COUNTED_MAX;

use super::act::{ActForm, Asked};
use super::export::{self, Column, Rows};
use super::frame::{Frame, Page};
use super::resellers::{self, place_of_reseller, place_of_subscription, subscription};
use super::visit::Fields;
use crate::app::App;
use crate::pauses::{self, PauseChangeDocument, PauseDocument, PausePayload};
use crate::request::Viewer;

/// Most pauses that have the form to end them on the page itself.
const DIALOGS_MAX: usize = 50;

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/console/pauses", get(page))
        .route("/console/pauses/export", get(export))
}

/// After how many hours a pause can end by itself, as the form offers it.
const HOURS: [i64; 4] = [1, 4, 12, 24];

/// What the form of a pause asks about its end.
pub(super) fn asked_end() -> Asked {
    let ends = HOURS.map(|hours| (hours.to_string(), format!("by itself in {hours} h")));
    let none = (String::new(), "when it is resumed".to_owned());
    Asked {
        name: "until",
        label: "Ends",
        choices: std::iter::once(none).chain(ends).collect(),
        ..Asked::default()
    }
}

/// The pause that a form asks for at `now`, as the API takes it.
///
/// # Errors
///
/// A [`Problem`] for an end that the form does not offer: a pause without one would last.
pub(super) fn pausing(fields: &Fields, now: DateTime<Utc>) -> Result<Payload<PausePayload>, Problem> {
    let asked = fields.get("until").unwrap_or_default();
    let hours = HOURS.into_iter().find(|hours| hours.to_string() == asked);
    if hours.is_none() && !asked.is_empty() {
        let problem = FieldProblem::new("until", "is not one of the ends that are offered");
        return Err(Problem::fields(vec![problem]));
    }
    Ok(Payload(PausePayload {
        note: fields.get("note").map(str::to_owned),
        until: hours.map(|hours| now + TimeDelta::hours(hours)),
    }))
}

/// What came of a pause, in a sentence; `what` begins it.
pub(super) fn paused(what: &str, change: &PauseChangeDocument) -> String {
    let pause = change.pause.as_ref();
    let until = pause.and_then(|pause| pause.until).map(time);
    if change.changed {
        let end = until.map_or_else(
            || "you resume it".to_owned(),
            |until| format!("{until}, unless you resume it before"),
        );
        return format!("{what} is paused. What comes is stored, and waits until {end}.");
    }
    let until = until.map_or(String::new(), |until| format!(" until {until}"));
    let by = pause.map_or(String::new(), |pause| {
        format!(" by {}{until}, with the note: {}", pause.paused_by, pause.note)
    });
    format!(
        "{what} was paused before{by}. Nothing was changed: the new note and end were ignored. To change them, resume it and pause \
         it again."
    )
}

/// What came of the end of a pause, in a sentence; `what` begins it.
pub(super) fn resumed(what: &str, change: &PauseChangeDocument) -> String {
    let done = if change.changed {
        format!("{what} goes on; what waited is sent by itself.")
    } else {
        format!("{what} was not paused by an operator. Nothing was changed.")
    };
    if change.still_paused.is_empty() {
        return done;
    }
    let still = change.still_paused.join(", and ");
    if change.changed {
        format!("This pause of {what} has ended, but it does not go on yet: {still}.")
    } else {
        format!("{done} It waits all the same: {still}.")
    }
}

/// How much waits for the end of the pause of a reseller or a subscription by an operator; none where that is not known.
pub(super) async fn waiting_for(
    app: &App,
    viewer: Viewer,
    (scope, key): (&str, &str),
) -> Result<Option<u64>, Problem> {
    let in_force = pauses::in_force(app, viewer).await?;
    let mut by_operators = in_force.iter().filter(|pause| !pause.by_reseller);
    let pause = by_operators.find(|pause| pause.scope == scope && pause.key == key);
    Ok(match pause {
        Some(pause) => pauses::waiting(app, pause).await,
        None => None,
    })
}

/// How much waits for the end of a pause, in a sentence.
pub(super) fn gathered(waiting: Option<u64>) -> String {
    let Some(waiting) = waiting else {
        return "How many notifications wait for it is not known.".to_owned();
    };
    let (more, waiting) = match waiting > PAUSED_COUNTED_MAX {
        true => ("More than ", PAUSED_COUNTED_MAX),
        false => ("", waiting),
    };
    let waits = words::number_of(waiting, "notification waits", "notifications wait");
    format!("{more}{waits} for it now.")
}

/// A pause, and how much waits for its end.
struct InForce {
    pause: PauseView,
    /// The page about what is paused, and the one to resume it.
    place: String,
    resume: String,
    /// None where it is not counted.
    waiting: Option<u64>,
    form: Option<ActForm>,
}

#[derive(Template)]
#[template(path = "pauses.html")]
struct Pauses {
    frame: Frame,
    pauses: Vec<InForce>,
}

impl Pauses {
    /// Where the list is as a file.
    fn file(&self, format: &str) -> String {
        export::link(&self.frame, "/console/pauses/export", format)
    }
}

/// What a file of pauses has.
const COLUMNS: [Column; 9] = [
    ("scope", "/scope"),
    ("key", "/key"),
    ("resellerId", "/resellerId"),
    ("name", "/name"),
    ("pausedAt", "/pausedAt"),
    ("until", "/until"),
    ("pausedBy", "/pausedBy"),
    ("note", "/note"),
    ("waiting", "/waiting"),
];

/// The list as a file. It comes at once.
async fn export(State(app): State<Arc<App>>, _: Viewer, frame: Frame) -> Result<Response, Problem> {
    let part = move |_: Option<String>| {
        let app = Arc::clone(&app);
        async move {
            let deadline = app.deadline();
            let Json(list) = pauses::list(State(app), Viewer { deadline }).await?;
            let by_operators = list.items.into_iter().filter(|it| !it.pause.by_reseller);
            Ok(Rows::of(&by_operators.collect::<Vec<_>>(), None))
        }
    };
    export::file(&frame, "pauses", &COLUMNS, part).await
}

async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
) -> Result<impl IntoResponse, Problem> {
    let Json(list) = pauses::list(State(app), viewer).await?;
    // What a reseller has paused itself, no operator can resume.
    let by_operators = list.items.into_iter().filter(|it| !it.pause.by_reseller);
    let pauses = by_operators.enumerate().map(|(index, listed)| {
        let PauseDocument { pause, waiting, .. } = listed;
        let place = place_of(&pause.scope, &pause.key);
        let resume = match pause.scope.as_str() {
            "lane" => format!("/console/lanes/{}/resume", pause.key),
            _ => format!("{place}/resume"),
        };
        InForce {
            waiting,
            form: (index < DIALOGS_MAX && frame.may_operate)
                .then(|| form(&frame, index, &pause, waiting))
                .flatten(),
            place,
            resume,
            pause,
        }
    });
    let pauses = pauses.collect();
    Ok(Page(Pauses { frame, pauses }))
}

/// The page about what is paused.
pub(super) fn place_of(scope: &str, key: &str) -> String {
    match scope {
        "lane" => format!("/console/lanes#{key}"),
        "reseller" => place_of_reseller(key),
        _ => place_of_subscription(key),
    }
}

/// The form to end a pause. A lane has a page of its own for that, where its name is typed.
fn form(frame: &Frame, index: usize, pause: &PauseView, waiting: Option<u64>) -> Option<ActForm> {
    let form = match pause.scope.as_str() {
        "reseller" => resellers::resume_form(frame, &pause.key, waiting),
        "subscription" => subscription::resume_form(frame, &pause.key, waiting),
        _ => return None,
    };
    let id = format!("resume-{index}");
    Some(ActForm { id, ..form }.in_dialog())
}

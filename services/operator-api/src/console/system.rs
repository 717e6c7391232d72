//! `/console/system`: the processes, the broker and the database, and bringing back at once what would come back by itself.
//!
//! It opens while the database or the broker is away: what could not be found out then is said to be so.

use std::collections::BTreeSet;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use explain::words;
use http_api::Problem;

use super::act::{ActForm, needed_note, note};
use super::frame::{Frame, Page, done};
use super::lanes::noun;
use super::now::{place, tone};
use super::visit::Fields;
use crate::app::App;
use crate::request::{Operator, Viewer};
use crate::restore;
use crate::status::{self, Finding, LaneDocument, QueueDocument, Severity, StatusDocument};

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(HERE, get(page))
        .route("/console/system/rescue", get(ask_to_rescue).post(rescue))
        .route("/console/system/rebuild", get(ask_to_rebuild).post(rebuild))
}

const HERE: &str = "/console/system";

#[derive(Template)]
#[template(path = "system.html")]
struct System {
    frame: Frame,
    status: StatusDocument,
    /// What is out of order here, rather than on another page.
    findings: Vec<Finding>,
    rescue: ActForm,
    rebuild: ActForm,
}

impl System {
    fn tone_of(&self, severity: &Severity) -> &'static str {
        tone(*severity)
    }

    /// The versions that run, where that is more than one.
    fn versions(&self) -> Option<String> {
        let processes = self.status.processes.iter().flatten();
        let versions: BTreeSet<&str> = processes
            .filter(|it| !it.silent)
            .map(|it| it.version.as_str())
            .collect();
        (versions.len() > 1).then(|| versions.into_iter().collect::<Vec<_>>().join(", "))
    }

    fn silent(&self) -> usize {
        self.status
            .processes
            .iter()
            .flatten()
            .filter(|it| it.silent)
            .count()
    }

    /// How full a queue is, in percent.
    fn fill(&self, queue: &QueueDocument) -> Option<u32> {
        let (messages, capacity) = (u64::from(queue.messages?), u64::from(queue.capacity?));
        let percent = (messages * 100).checked_div(capacity)?;
        u32::try_from(percent.min(100)).ok()
    }
}

async fn page(State(app): State<Arc<App>>, viewer: Viewer, frame: Frame) -> impl IntoResponse {
    let mut status = status::status(State(app), viewer).await.0;
    let mut findings = std::mem::take(&mut status.findings);
    findings.retain(|finding| place(finding).is_none_or(|(place, _)| place.starts_with(HERE)));
    let lanes = status.lanes.as_deref();
    Page(System {
        rescue: rescue_form(&frame, lanes).in_dialog(),
        rebuild: rebuild_form(&frame, lanes).in_dialog(),
        status,
        findings,
        frame,
    })
}

/// The lanes as they are now; none while that cannot be found out.
async fn lanes(app: Arc<App>, viewer: Viewer) -> Option<Vec<LaneDocument>> {
    status::status(State(app), viewer).await.0.lanes
}

/// How many pushes and notifications an act is about.
fn number(lanes: Option<&[LaneDocument]>, count: fn(&LaneDocument) -> u64) -> String {
    let Some(lanes) = lanes else {
        return "how many that is could not be found out".to_owned();
    };
    let each = lanes.iter().map(|lane| {
        let (one, many) = noun(lane.lane);
        words::of(count(lane), one, many)
    });
    format!("{} now", each.collect::<Vec<_>>().join(" and "))
}

fn rescue_form(frame: &Frame, lanes: Option<&[LaneDocument]>) -> ActForm {
    ActForm {
        id: "rescue".to_owned(),
        title: "Rescue what was lost".to_owned(),
        said: vec![
            format!(
                "Every push and notification of both lanes whose lease has run out waits for the queue again at once: {}. The retry \
                 worker does the same by itself every few seconds.",
                number(lanes, |lane| lane.lost)
            ),
            "It is harmless when nothing was lost. It cannot be undone: what is rescued is sent, or given up when it has used \
             up its attempts."
                .to_owned(),
        ],
        button: "Rescue",
        ..ActForm::new(frame, "/console/system/rescue".to_owned(), HERE.to_owned())
    }
}

fn rebuild_form(frame: &Frame, lanes: Option<&[LaneDocument]>) -> ActForm {
    ActForm {
        id: "rebuild".to_owned(),
        title: "Rebuild the broker's content".to_owned(),
        said: vec![
            format!(
                "Exchanges, queues and bindings are declared again; then everything of both lanes that is queued and not being \
                 sent waits for the queues once more, and the retry worker puts it there: {}.",
                number(lanes, |lane| lane.queued)
            ),
            "For a broker that was wiped. It is harmless when nothing was lost, and while services run: nothing is sent twice \
             for that. It cannot be undone, and takes up to 25 seconds with a great backlog."
                .to_owned(),
        ],
        button: "Rebuild",
        is_dangerous: true,
        ..ActForm::new(frame, "/console/system/rebuild".to_owned(), HERE.to_owned())
    }
}

async fn ask_to_rescue(State(app): State<Arc<App>>, viewer: Viewer, frame: Frame) -> Response {
    rescue_form(&frame, lanes(app, viewer).await.as_deref()).page(frame)
}

async fn ask_to_rebuild(State(app): State<Arc<App>>, viewer: Viewer, frame: Frame) -> Response {
    rebuild_form(&frame, lanes(app, viewer).await.as_deref()).page(frame)
}

async fn rescue(operator: Operator, frame: Frame, fields: Fields) -> Result<Response, Problem> {
    let (app, viewer) = (Arc::clone(&operator.app), operator.viewer());
    match restore::rescue(operator, note(&fields)).await {
        Ok(Json(rescued)) => Ok(done(HERE, &rescued.said())),
        Err(problem) => {
            let lanes = lanes(app, viewer).await;
            rescue_form(&frame, lanes.as_deref()).again(frame, &fields, problem)
        }
    }
}

async fn rebuild(operator: Operator, frame: Frame, fields: Fields) -> Result<Response, Problem> {
    let (app, viewer) = (Arc::clone(&operator.app), operator.viewer());
    let rebuilt = match needed_note(&fields) {
        Ok(note) => restore::rebuild(operator, note).await,
        Err(problem) => Err(problem),
    };
    match rebuilt {
        Ok(Json(rebuilt)) => {
            let said = format!(
                "The broker's content is rebuilt: {} and {} wait for the queues again, and the retry worker puts them there.",
                frame.of(rebuilt.pushes, "push", "pushes"),
                frame.of(rebuilt.notifications, "notification", "notifications")
            );
            Ok(done(HERE, &said))
        }
        Err(problem) => {
            let lanes = lanes(app, viewer).await;
            rebuild_form(&frame, lanes.as_deref()).again(frame, &fields, problem)
        }
    }
}

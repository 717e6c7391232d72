//! `/console/jobs` and `/console/jobs/{id}`: how far jobs are, and what became of what they have made due again.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http_api::{Id, Params, Payload, Problem};
use uuid::Uuid;

use crate::app::App;
use crate::console::dead_letters::{Chosen, Deed, DeedPage, cause, moment};
use crate::console::frame::{Frame, Page, done};
use crate::console::visit::Fields;
use crate::dead_letter_jobs::{self, JobDocument, JobParams, OutcomeDocument};
use crate::dead_letters;
use crate::note::NotePayload;
use crate::request::{Operator, Viewer};

const PAUSE: Deed = Deed {
    name: "pause",
    title: "Pause the job",
    effect: "It stops until it is resumed. What it has done stays done.",
    button: "Pause",
    tone: "primary",
    needs_note: false,
};

const RESUME: Deed = Deed {
    name: "resume",
    title: "Resume the job",
    effect: "It goes on where it stopped, at its rate.",
    button: "Resume",
    tone: "primary",
    needs_note: false,
};

const CANCEL: Deed = Deed {
    name: "cancel",
    title: "Cancel the job",
    effect: "It ends before it is through, and cannot be resumed. What it has done stays done; the dead letters that are left stay open, so that \
             another job can be about them.",
    button: "Cancel the job",
    tone: "danger",
    needs_note: false,
};

#[derive(Template)]
#[template(path = "jobs.html")]
struct Jobs {
    frame: Frame,
    jobs: Vec<JobDocument>,
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "job.html")]
struct Job {
    frame: Frame,
    job: JobDocument,
    chosen: Option<Chosen>,
    /// What became of what was replayed, or why that cannot be told.
    outcome: Option<Result<OutcomeDocument, String>>,
    /// Open dead letters that match but for the filter's times and were written later, whether there are more, and where they are listed.
    since: Option<(u64, bool, String)>,
    path: String,
    deeds: Vec<Deed>,
    note: String,
}

/// What the pages say of a job.
trait Told {
    fn is_live(&self) -> bool;
    /// How much of it was looked at, in hundredths.
    fn percent(&self) -> u64;
    fn verb(&self) -> &'static str;
    /// Which dead letters it is about, in a heading: without times.
    fn about(&self) -> String;
    fn skipped_in_all(&self) -> u64;
}

impl Told for JobDocument {
    fn is_live(&self) -> bool {
        matches!(self.status, "RUNNING" | "PAUSED")
    }

    fn percent(&self) -> u64 {
        match (self.status, self.matching) {
            ("COMPLETED", _) | (_, 0) => 100,
            (_, matching) => (self.examined * 100 / matching).min(100),
        }
    }

    fn verb(&self) -> &'static str {
        if self.action == "replay" {
            "Replay"
        } else {
            "Discard"
        }
    }

    fn about(&self) -> String {
        let chosen = self
            .filter
            .as_ref()
            .map(|filter| Chosen::kept(filter).whenever().said());
        match (chosen, &self.ids) {
            (Some(everything), _) if everything.is_empty() => "dead letters of every kind".to_owned(),
            (Some(said), _) => said,
            (None, Some(ids)) => format!("{} chosen one by one", ids.len()),
            (None, None) => "chosen one by one".to_owned(),
        }
    }

    fn skipped_in_all(&self) -> u64 {
        self.skipped.values().sum()
    }
}

/// Why a dead letter was left as it is.
fn skipped(reason: &str) -> &str {
    match reason {
        "UNFINISHED" => "will be sent anyhow",
        "DELIVERED" => "delivered after all",
        "CANCELLED" => "cancelled by an operator",
        "GONE" => "not stored any more",
        "SUBSCRIPTION_INACTIVE" => "the subscription is not active",
        "MALFORMED" => "about a message that cannot be read",
        "OFTEN_RECOVERED" => "sent again by itself often enough",
        "RESOLVED" => "closed by another request meanwhile",
        other => other,
    }
}

/// Why Postrider has ended a recovery.
fn ended(reason: &str) -> &str {
    match reason {
        "FAILING" => "the endpoint fails again; what is left waits for the next recovery",
        "INACTIVE" => "its subscription is not active any more; what is left waits for the next recovery",
        "SWITCHED_OFF" => "recoveries were switched off",
        other => other,
    }
}

/// The list.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    params: Params<JobParams>,
) -> Result<impl IntoResponse, Problem> {
    let found = dead_letter_jobs::list(State(app), viewer, params).await?.0;
    Ok(Page(Jobs {
        frame,
        jobs: found.items,
        next: found.next,
    }))
}

fn path(id: Uuid) -> String {
    format!("/console/jobs/{id}")
}

/// One job.
pub(super) async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    let deadline = viewer.deadline;
    let (app, again) = (|| State(Arc::clone(&app)), || Viewer { deadline });
    let job = dead_letter_jobs::find(app(), viewer, Id(id)).await?.0;
    let outcome = if job.action == "replay" {
        match dead_letter_jobs::outcome(app(), again(), Id(id)).await {
            Ok(outcome) => Some(Ok(outcome.0)),
            Err(problem) if problem.kind().status() == StatusCode::SERVICE_UNAVAILABLE => {
                Some(Err(problem.detail().to_owned()))
            }
            Err(problem) => return Err(problem),
        }
    } else {
        None
    };
    let chosen = job.filter.as_ref().map(Chosen::kept);
    let since = match &chosen {
        Some(chosen) => {
            // Where the counting ended, which is exact whatever the clocks say of when the job was made.
            let end = chosen.word("until").parse().unwrap_or(job.created_at);
            let later = chosen.whenever().with("since", moment(end));
            let params = later.params(frame.now, &[("limit", "1")]).await?;
            let found = dead_letters::groups(app(), again(), params).await?.0;
            let list = later.link("/console/dead-letters/list", &[]);
            Some((found.total, found.at_least, list)).filter(|(total, _, _)| *total > 0)
        }
        None => None,
    };
    let deeds = match job.status {
        "RUNNING" => vec![PAUSE, CANCEL],
        "PAUSED" => vec![RESUME, CANCEL],
        _ => Vec::new(),
    };
    Ok(Page(Job {
        frame,
        job,
        chosen,
        outcome,
        since,
        path: path(id),
        deeds,
        note: String::new(),
    }))
}

impl Job {
    /// How often the page is asked for again, in milliseconds: for as long as anything can change.
    fn pace(&self) -> Option<u32> {
        let waits = matches!(&self.outcome, Some(Ok(outcome)) if outcome.total.waiting > 0);
        match (self.job.is_live(), waits) {
            (true, _) => Some(2_000),
            (false, true) => Some(5_000),
            (false, false) => None,
        }
    }

    /// The most important thing, in a sentence.
    fn headline(&self) -> String {
        let (number, done) = (
            |count| self.frame.number(count),
            if self.job.action == "replay" {
                "replayed"
            } else {
                "discarded"
            },
        );
        let job = &self.job;
        let counts = format!("{} of {} {done}", number(job.done), number(job.matching));
        let left = job.skipped_in_all();
        let skipped = if left > 0 {
            format!(", {} skipped", number(left))
        } else {
            String::new()
        };
        format!("{counts}{skipped}.")
    }
}

/// The form alone, for browsers without scripts.
async fn form(
    app: Arc<App>,
    viewer: Viewer,
    frame: Frame,
    id: Uuid,
    deed: Deed,
) -> Result<Response, Problem> {
    let job = dead_letter_jobs::find(State(app), viewer, Id(id)).await?.0;
    let about = format!(
        "{} {}: {} of {} looked at.",
        job.verb(),
        job.about(),
        frame.number(job.examined),
        frame.number(job.matching)
    );
    Ok(Page(DeedPage::new(frame, deed, path(id), about)).into_response())
}

fn body(fields: &Fields) -> Payload<NotePayload> {
    Payload(NotePayload {
        note: fields.get("note").map(str::to_owned),
    })
}

/// The form of a deed and what it does.
macro_rules! deed {
    ($form:ident, $act:ident, $deed:expr, $said:expr) => {
        pub(super) async fn $form(
            State(app): State<Arc<App>>,
            viewer: Viewer,
            frame: Frame,
            Id(id): Id,
        ) -> Result<Response, Problem> {
            form(app, viewer, frame, id, $deed).await
        }

        pub(super) async fn $act(
            operator: Operator,
            frame: Frame,
            Id(id): Id,
            fields: Fields,
        ) -> Result<Response, Problem> {
            match dead_letter_jobs::$act(operator, Id(id), body(&fields)).await {
                Ok(_) => Ok(done(&path(id), $said)),
                Err(problem) => DeedPage::again(frame, $deed, path(id), &fields, problem),
            }
        }
    };
}

deed!(
    pause_form,
    pause,
    PAUSE,
    "The job is paused. What it has done stays done; resume it to go on."
);
deed!(resume_form, resume, RESUME, "The job goes on where it stopped.");
deed!(
    cancel_form,
    cancel,
    CANCEL,
    "The job was cancelled. What it has done stays done; the dead letters that are left stay open."
);

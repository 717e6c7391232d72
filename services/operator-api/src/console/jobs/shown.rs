//! `/console/jobs` and `/console/jobs/{id}`: how far jobs are, and what became of what they have made due again.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use domain::counted::of as counted;
use http::StatusCode;
use http_api::paging::List;
use http_api::{Id, Payload, Problem, ReadParams};
use uuid::Uuid;

use crate::app::App;
use crate::console::act::{ActForm, Asked, needed_note, note};
use crate::console::dead_letters::{Chosen, cause, moment};
use crate::console::export::{self, Column};
use crate::console::frame::{Frame, Page, done};
use crate::console::visit::Fields;
use crate::dead_letter_jobs::{self, ChangePayload, JobDocument, JobParams, OutcomeDocument};
use crate::dead_letters;
use crate::request::{Operator, Viewer};

#[derive(Template)]
#[template(path = "jobs.html")]
struct Jobs {
    frame: Frame,
    jobs: Vec<JobDocument>,
    next: Option<String>,
}

impl Jobs {
    /// Where the list is as a file.
    fn file(&self, format: &str) -> String {
        export::link(&self.frame, "/console/jobs/export", format)
    }

    /// What became of what a job has replayed, as `postrider jobs list` says it.
    fn became(&self, outcome: &OutcomeDocument) -> String {
        let total = &outcome.total;
        let number = |count: u64| self.frame.number(count);
        let mut said = format!(
            "{} delivered, {} waiting, {} failed again",
            number(total.delivered),
            number(total.waiting),
            number(total.failed_again)
        );
        for (count, what) in [(total.cancelled, "cancelled"), (total.gone, "not kept any more")] {
            if count > 0 {
                said.push_str(&format!(", {} {what}", number(count)));
            }
        }
        if !outcome.whole {
            said.push_str(&format!(
                "; of a sample of {} dead letters",
                number(outcome.examined)
            ));
        }
        said
    }
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
    forms: Vec<ActForm>,
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
pub(super) fn skipped(reason: &str) -> &str {
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
    mut frame: Frame,
    params: ReadParams<JobParams>,
) -> Result<impl IntoResponse, Problem> {
    let found = dead_letter_jobs::list(State(app), viewer, params).await;
    let found = frame.filtered(found.map(|list| list.0), &["status"])?;
    let found = found.unwrap_or_else(|| List::new(Vec::new(), None));
    let status = frame.list_status();
    let page = Page(Jobs {
        frame,
        jobs: found.items,
        next: found.next,
    });
    Ok((status, page))
}

/// What a file of jobs has.
const COLUMNS: [Column; 22] = [
    ("id", "/id"),
    ("action", "/action"),
    ("status", "/status"),
    ("createdBy", "/createdBy"),
    ("createdAt", "/createdAt"),
    ("updatedAt", "/updatedAt"),
    ("finishedAt", "/finishedAt"),
    ("note", "/note"),
    ("filter", "/filter"),
    ("recovers", "/recovers"),
    ("perSecond", "/perSecond"),
    ("matching", "/matching"),
    ("examined", "/examined"),
    ("done", "/done"),
    ("skipped", "/skipped"),
    ("delivered", "/outcome/delivered"),
    ("waiting", "/outcome/waiting"),
    ("failedAgain", "/outcome/failedAgain"),
    ("outcomeWhole", "/outcome/whole"),
    ("pausedBecause", "/pausedBecause"),
    ("endedBecause", "/endedBecause"),
    ("cancelledBy", "/cancelledBy"),
];

/// The list as a file.
pub(super) async fn export(
    State(app): State<Arc<App>>,
    _: Viewer,
    frame: Frame,
) -> Result<Response, Problem> {
    export::list(app, &frame, ("jobs", &COLUMNS), dead_letter_jobs::list).await
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
    let app = || State(Arc::clone(&app));
    let job = dead_letter_jobs::find(app(), viewer, Id(id)).await?.0;
    let outcome = if job.action == "replay" {
        match dead_letter_jobs::outcome(app(), viewer, Id(id)).await {
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
            let found = dead_letters::groups(app(), viewer, params).await?.0;
            let list = later.link("/console/dead-letters/list", &[]);
            Some((found.total, found.at_least, list)).filter(|(total, _, _)| *total > 0)
        }
        None => None,
    };
    let forms = acts(&job).iter().map(|act| form(&job, *act, &frame).in_dialog());
    let forms = forms.collect();
    Ok(Page(Job {
        frame,
        job,
        chosen,
        outcome,
        since,
        forms,
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

    /// Where what it has resolved is listed, and how much that is: its filter finds open ones alone.
    fn resolved(&self) -> Option<(String, String)> {
        let state = if self.job.action == "replay" {
            "REPLAYED"
        } else {
            "DISCARDED"
        };
        let list = || Chosen::resolved_by(self.job.id, state).link("/console/dead-letters/list", &[]);
        let done = self.job.done;
        (done > 0).then(|| (list(), counted(done, "dead letter", "dead letters")))
    }

    /// Of a cancelled one, how many it has not looked at.
    fn untouched(&self) -> String {
        let left = self.job.matching.saturating_sub(self.job.examined);
        let is = if left == 1 { "is" } else { "are" };
        format!(
            "{} {is} left untouched.",
            counted(left, "dead letter", "dead letters")
        )
    }

    /// Why it is paused, and what comes next.
    fn paused(&self) -> Option<String> {
        let job = &self.job;
        let waiting = match &self.outcome {
            Some(Ok(outcome)) => outcome.total.waiting,
            _ => 0,
        };
        let failed = matches!(&self.outcome, Some(Ok(outcome)) if outcome.total.failed_again > 0);
        let said = match job.paused_because? {
            "CANARY" => {
                let first = self.frame.number(job.canary.unwrap_or_default());
                format!("It waits for what becomes of the first {first}, and goes on by itself when none of them fails again.")
            }
            "CANARY_FAILED" if failed => {
                "It has paused itself: of the first ones some failed again. Nothing more is sent until you decide.".to_owned()
            }
            "CANARY_FAILED" if waiting > 0 => {
                "It has paused itself: what became of the first ones was not known after a day. Nothing more is sent until you decide."
                    .to_owned()
            }
            "CANARY_FAILED" => {
                "It has paused itself: none of the first ones was delivered. Nothing more is sent until you decide.".to_owned()
            }
            "FAILED_AGAIN" => format!(
                "It has paused itself: more than {} % of what it has replayed failed again, or failed and is tried again. Nothing more is sent until you decide.",
                job.pause_above.unwrap_or_default()
            ),
            _ => "An operator has paused it.".to_owned(),
        };
        Some(said)
    }
}

/// What can be made of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobAct {
    Pause,
    Resume,
    Rate,
    Cancel,
}

/// What can be made of this one, the most likely first.
fn acts(job: &JobDocument) -> &'static [JobAct] {
    match (job.status, job.paused_because) {
        ("RUNNING", _) => &[JobAct::Pause, JobAct::Rate, JobAct::Cancel],
        // One that would go on by itself can be kept from it.
        ("PAUSED", Some("CANARY")) => &[JobAct::Resume, JobAct::Pause, JobAct::Rate, JobAct::Cancel],
        ("PAUSED", _) => &[JobAct::Resume, JobAct::Rate, JobAct::Cancel],
        _ => &[],
    }
}

/// The form of an act, as a page.
fn form(job: &JobDocument, act: JobAct, frame: &Frame) -> ActForm {
    let has_firsts = matches!(job.paused_because, Some("CANARY" | "CANARY_FAILED"));
    let about = format!(
        "{} {}: {} of {} looked at.",
        job.verb(),
        job.about(),
        frame.number(job.examined),
        frame.number(job.matching)
    );
    let (name, title, effect, button) = match act {
        JobAct::Pause => (
            "pause",
            "Pause the job",
            "It stops until it is resumed. What it has done stays done.",
            "Pause",
        ),
        JobAct::Resume if has_firsts => (
            "resume",
            "Go on with the rest",
            "The others are replayed at its rate, whatever became of the first ones. What failed again until now does not pause it again.",
            "Go on with the rest",
        ),
        JobAct::Resume => (
            "resume",
            "Resume the job",
            "It goes on where it stopped, at its rate. What failed again until now does not pause it again.",
            "Resume",
        ),
        JobAct::Rate => (
            "rate",
            "Change the rate of the job",
            "It holds from the next step on, which comes within a second.",
            "Change the rate",
        ),
        JobAct::Cancel => (
            "cancel",
            "Cancel the job",
            "It ends before it is through, and cannot be resumed. What it has done stays done; the dead letters that are left stay \
             open, so that another job can be about them.",
            "Cancel the job",
        ),
    };
    let rate = Asked {
        name: "perSecond",
        label: "Most a second",
        hint: "From 1 to 10,000.".to_owned(),
        value: job.per_second.to_string(),
        ..Asked::default()
    };
    ActForm {
        id: name.to_owned(),
        title: title.to_owned(),
        said: vec![about, effect.to_owned()],
        button,
        is_dangerous: act == JobAct::Cancel,
        fields: if act == JobAct::Rate {
            vec![rate]
        } else {
            Vec::new()
        },
        ..ActForm::new(frame, format!("{}/{name}", path(job.id)), path(job.id))
    }
}

async fn change_rate(operator: Operator, id: Uuid, fields: &Fields) -> Result<String, Problem> {
    let change = ChangePayload {
        per_second: fields.parse("perSecond", "a number")?,
        note: fields.get("note").map(str::to_owned),
    };
    let job = dead_letter_jobs::change(operator, Id(id), Payload(change))
        .await?
        .0;
    let rate = explain::words::number(job.per_second.into());
    Ok(format!("The job takes at most {rate} a second from now on."))
}

async fn did(operator: Operator, id: Uuid, act: JobAct, fields: &Fields) -> Result<String, Problem> {
    let (answer, said) = match act {
        JobAct::Pause => (
            dead_letter_jobs::pause(operator, Id(id), note(fields)).await,
            "The job is paused. What it has done stays done; resume it to go on.",
        ),
        JobAct::Resume => (
            dead_letter_jobs::resume(operator, Id(id), note(fields)).await,
            "The job goes on where it stopped.",
        ),
        JobAct::Rate => return change_rate(operator, id, fields).await,
        JobAct::Cancel => (
            dead_letter_jobs::cancel(operator, Id(id), needed_note(fields)?).await,
            "The job was cancelled. What it has done stays done; the dead letters that are left stay open.",
        ),
    };
    answer.map(|_| said.to_owned())
}

/// The page with the form of an act, and the act.
fn act_routes(act: JobAct) -> MethodRouter<Arc<App>> {
    let ask = async move |State(app): State<Arc<App>>, viewer: Viewer, frame: Frame, Id(id): Id| {
        let job = dead_letter_jobs::find(State(app), viewer, Id(id)).await?.0;
        Ok::<_, Problem>(form(&job, act, &frame).page(frame))
    };
    let act_on = async move |operator: Operator, frame: Frame, Id(id): Id, fields: Fields| {
        let (app, viewer) = (Arc::clone(&operator.app), operator.viewer());
        match did(operator, id, act, &fields).await {
            Ok(said) => Ok(done(&path(id), &said)),
            Err(problem) => {
                let job = dead_letter_jobs::find(State(app), viewer, Id(id)).await?.0;
                form(&job, act, &frame).again(frame, &fields, problem)
            }
        }
    };
    get(ask).post(act_on)
}

/// What can be made of jobs.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/console/jobs/{id}/pause", act_routes(JobAct::Pause))
        .route("/console/jobs/{id}/resume", act_routes(JobAct::Resume))
        .route("/console/jobs/{id}/rate", act_routes(JobAct::Rate))
        .route("/console/jobs/{id}/cancel", act_routes(JobAct::Cancel))
}

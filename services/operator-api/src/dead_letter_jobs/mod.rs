//! Bulk work on dead letters: `/dead-letters/jobs`.
//!
//! A request makes a row and is answered; the retry worker takes it from there, whatever becomes of this process.

mod choice;
mod create;
mod document;
mod outcome;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::dead_letter_job::{JobAction, JobCommand, JobStatus};
use explain::words::time;
use http_api::paging::{self, List};
use http_api::{FieldCode, FieldProblem, Id, Payload, Problem, ProblemKind, ReadParams};
use serde::Deserialize;
use store::JobCommanded;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::note::{self, Note, NotePayload};
use crate::request::{Operator, Viewer};

pub(crate) use choice::given;
use create::rate;
pub(crate) use create::{__path_create, between, create};
#[cfg(feature = "fuzzing")]
pub(crate) use create::{NewJobPayload, read};
pub(crate) use document::JobDocument;
pub(crate) use outcome::{__path_outcome, OutcomeDocument, outcome};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(find, change))
        .routes(routes!(outcome))
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(cancel))
}

/// Which jobs.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct JobParams {
    /// Of this status: RUNNING, PAUSED, COMPLETED or CANCELLED; of any when missing.
    pub(crate) status: Option<String>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

type Answer = Result<Json<JobDocument>, Problem>;

/// Lists jobs, the newest first.
#[utoipa::path(
    get, path = "/dead-letters/jobs", tag = "dead letters", operation_id = "listDeadLetterJobs",
    security(("apiKey" = [])),
    params(JobParams),
    responses((status = 200, description = "A part of the list, without the `ids` of jobs about single dead letters.",
        body = List<JobDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    ReadParams(params, mut wrong): ReadParams<JobParams>,
) -> Result<Json<List<JobDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let before = wrong.take(paging::read_id(params.cursor.as_deref()));
    let status: Result<Option<JobStatus>, _> = params.status.map(|name| name.parse()).transpose();
    let must = "must be RUNNING, PAUSED, COMPLETED or CANCELLED";
    let status =
        wrong.take(status.map_err(|_| Problem::query("status", must).coded(FieldCode::UnknownValue)));
    wrong.end()?;
    let listing = app.store.list_dead_letter_jobs(status, before, limit + 1);
    let jobs = http_api::by(viewer.deadline, ("the jobs", "read"), listing).await?;
    let replays = jobs.iter().filter(|job| job.action == JobAction::Replay);
    let replays: Vec<Uuid> = replays.map(|job| job.id).collect();
    let looking = app.store.dead_letter_job_outcomes(&replays);
    let outcomes = http_api::by(viewer.deadline, ("the outcomes", "read"), looking).await?;
    let outcomes = outcomes.unwrap_or_default();
    let now = app.now();
    Ok(Json(List::by_id(
        jobs,
        limit,
        |job| job.id,
        |job| JobDocument {
            outcome: outcomes.get(&job.id).cloned().map(OutcomeDocument::from),
            ..JobDocument::of(job, now)
        },
    )))
}

/// Shows a job.
#[utoipa::path(
    get, path = "/dead-letters/jobs/{id}", tag = "dead letters", operation_id = "findDeadLetterJob",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The job.")),
    responses((status = 200, description = "The job as it stands.", body = JobDocument))
)]
pub(crate) async fn find(State(app): State<Arc<App>>, viewer: Viewer, Id(id): Id) -> Answer {
    let finding = app.store.find_dead_letter_job(id);
    let job = http_api::by(viewer.deadline, ("the job", "read"), finding).await?;
    let job = job.ok_or_else(unknown)?;
    Ok(Json(JobDocument::of(job, app.now())))
}

/// What is to be changed of a job.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = DeadLetterJobChange)]
pub(crate) struct ChangePayload {
    /// Most dead letters a second from now on.
    #[schema(value_type = u32, minimum = 1, maximum = 10_000, example = 20)]
    pub(crate) per_second: Option<i64>,
    /// Why; at most 2,000 bytes.
    #[schema(max_length = 2_000)]
    pub(crate) note: Option<String>,
}

/// Changes the rate of a job, whether it runs or is paused.
#[utoipa::path(
    patch, path = "/dead-letters/jobs/{id}", tag = "dead letters", operation_id = "changeDeadLetterJob",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The job.")),
    request_body(content = ChangePayload, example = json!({"perSecond": 20, "note": "the endpoint is slow"})),
    responses((status = 200, description = "The job as it is now.", body = JobDocument))
)]
pub(crate) async fn change(operator: Operator, Id(id): Id, Payload(body): Payload<ChangePayload>) -> Answer {
    let needed = || {
        FieldProblem::new("perSecond", "is needed: how many dead letters a second at most")
            .coded(FieldCode::Missing)
    };
    let per_second = body.per_second.ok_or_else(needed).and_then(rate);
    let per_second = per_second.map_err(|problem| Problem::fields(vec![problem]))?;
    let act = operator.act(note::optional(body.note.as_deref())?);
    let pacing = operator.app.store.pace_dead_letter_job(id, per_second, &act);
    let commanded = http_api::by(operator.deadline, ("the job", "changed"), pacing).await?;
    commanded_document(commanded, act.at)
}

/// Stops a job until it is resumed. What it has done stays done.
#[utoipa::path(
    post, path = "/dead-letters/jobs/{id}/pause", tag = "dead letters", operation_id = "pauseDeadLetterJob",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The job.")),
    request_body = NotePayload,
    responses((status = 200, description = "The job as it is now.", body = JobDocument))
)]
pub(crate) async fn pause(operator: Operator, Id(id): Id, Payload(body): Note) -> Answer {
    command(&operator, id, JobCommand::Pause, &body).await
}

/// Lets a paused job go on.
///
/// One that has paused itself since its first ones failed again, or are waited for, goes on with the others; what failed again until now does not
/// pause it again.
#[utoipa::path(
    post, path = "/dead-letters/jobs/{id}/resume", tag = "dead letters", operation_id = "resumeDeadLetterJob",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The job.")),
    request_body = NotePayload,
    responses((status = 200, description = "The job as it is now.", body = JobDocument))
)]
pub(crate) async fn resume(operator: Operator, Id(id): Id, Payload(body): Note) -> Answer {
    command(&operator, id, JobCommand::Resume, &body).await
}

/// Ends a job before it is through. What it has done stays done.
#[utoipa::path(
    post, path = "/dead-letters/jobs/{id}/cancel", tag = "dead letters", operation_id = "cancelDeadLetterJob",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The job.")),
    request_body = NotePayload,
    responses((status = 200, description = "The job as it is now.", body = JobDocument))
)]
pub(crate) async fn cancel(operator: Operator, Id(id): Id, Payload(body): Note) -> Answer {
    command(&operator, id, JobCommand::Cancel, &body).await
}

async fn command(operator: &Operator, id: Uuid, command: JobCommand, body: &NotePayload) -> Answer {
    let act = operator.act(body.optional()?);
    let commanding = operator.app.store.command_dead_letter_job(id, command, &act);
    let commanded = http_api::by(operator.deadline, ("the job", "changed"), commanding).await?;
    let is_repeated = command == JobCommand::Cancel && commanded == JobCommanded::Ended(JobStatus::Cancelled);
    if is_repeated {
        return Err(cancelled_before(operator, id).await?);
    }
    commanded_document(commanded, act.at)
}

/// That a job was cancelled before, when and by whom.
async fn cancelled_before(operator: &Operator, id: Uuid) -> Result<Problem, Problem> {
    let finding = operator.app.store.find_dead_letter_job(id);
    let job = http_api::by(operator.deadline, ("the job", "read"), finding).await?;
    let job = job.ok_or_else(unknown)?;
    let at = job
        .finished_at
        .map_or(String::new(), |at| format!(", at {}", time(at)));
    let by = job.cancelled_by.as_deref().unwrap_or("Postrider");
    let detail = format!("the job was cancelled before{at} by {by}");
    Ok(Problem::new(ProblemKind::CONFLICT, detail))
}

fn commanded_document(commanded: JobCommanded, now: DateTime<Utc>) -> Answer {
    match commanded {
        JobCommanded::Done(job) => Ok(Json(JobDocument::of(*job, now))),
        JobCommanded::Ended(status) => Err(Problem::new(
            ProblemKind::CONFLICT,
            format!("the job has ended before: it is {status}"),
        )),
        JobCommanded::Unknown => Err(unknown()),
    }
}

fn unknown() -> Problem {
    Problem::new(
        ProblemKind::NOT_FOUND,
        "no job has this identifier; `postrider find`, or GET /search, tells what it is of",
    )
}

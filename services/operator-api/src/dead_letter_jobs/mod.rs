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
use domain::dead_letter_job::{JobCommand, JobStatus};
use http_api::paging::{self, List};
use http_api::{Id, Params, Payload, Problem, ProblemKind};
use serde::Deserialize;
use store::JobCommanded;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::note::{Note, NotePayload};
use crate::request::{Operator, Viewer};

pub(crate) use create::{__path_create, create};
#[cfg(feature = "fuzzing")]
pub(crate) use create::{NewJobPayload, read};
use document::JobDocument;
pub(crate) use outcome::{__path_outcome, outcome};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(find))
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
    status: Option<String>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// What the previous part gave as `next`.
    cursor: Option<String>,
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
    Params(params): Params<JobParams>,
) -> Result<Json<List<JobDocument>>, Problem> {
    let limit = paging::limit(params.limit)?;
    let before = paging::read_id(params.cursor.as_deref())?;
    let status: Option<JobStatus> = params
        .status
        .map(|name| name.parse())
        .transpose()
        .map_err(|_| Problem::query("status", "must be RUNNING, PAUSED, COMPLETED or CANCELLED"))?;
    let listing = app.store.list_dead_letter_jobs(status, before, limit + 1);
    let jobs = http_api::by(viewer.deadline, ("the jobs", "read"), listing).await?;
    let now = app.now();
    Ok(Json(List::by_id(
        jobs,
        limit,
        |job| job.id,
        |job| JobDocument::of(job, now),
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
    match http_api::by(operator.deadline, ("the job", "changed"), commanding).await? {
        JobCommanded::Done(job) => Ok(Json(JobDocument::of(*job, act.at))),
        JobCommanded::Ended(status) => Err(Problem::new(
            ProblemKind::CONFLICT,
            format!("the job has ended before: it is {status}"),
        )),
        JobCommanded::Unknown => Err(unknown()),
    }
}

fn unknown() -> Problem {
    Problem::new(ProblemKind::NOT_FOUND, "no job has this identifier")
}

//! Making jobs, and seeing first what they would be about.

use std::collections::HashSet;

use axum::Json;
use axum::response::{IntoResponse, Response};
use domain::dead_letter_job::JobAction;
use http::StatusCode;
use http::header::LOCATION;
use http_api::{FieldProblem, Object, Payload, Problem, ProblemKind};
use serde::Deserialize;
use store::{DeadLetterSelection, JobCreated, NewDeadLetterJob, Preview};
use utoipa::ToSchema;
use uuid::Uuid;

use super::choice::FilterPayload;
use super::document::JobDocument;
use crate::note;
use crate::request::Operator;

/// Most dead letters that can be chosen one by one.
const IDS_MAX: usize = 10_000;
/// How fast a job may be, and is when the request does not say.
const PER_SECOND_MAX: u32 = 10_000;
const PER_SECOND_DEFAULT: u32 = 100;

/// A job to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = NewDeadLetterJob)]
pub(crate) struct NewJobPayload {
    /// What to do to each dead letter: `replay` or `discard`.
    #[schema(value_type = String, example = "replay")]
    action: Option<String>,
    /// Which dead letters, one by one; either this or `filter`.
    #[schema(max_items = 10_000)]
    ids: Option<Vec<String>>,
    /// Which dead letters: all that are open and match. An empty object stands for every open one.
    #[schema(value_type = Option<FilterPayload>)]
    filter: Option<Object<FilterPayload>>,
    /// Why; at most 2,000 bytes. Needed to discard.
    #[schema(max_length = 2_000, example = "Swrve is back since 14:20, see incident 17.")]
    note: Option<String>,
    /// Most dead letters a second.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000, default = 100)]
    per_second: Option<i64>,
    /// Count, and do nothing.
    #[serde(default)]
    dry_run: bool,
}

/// Replays or discards dead letters in bulk.
///
/// Only those that are open and were there when the job was made. With `dryRun` nothing is changed: the answer says how
/// many there are, by kind of failure.
#[utoipa::path(
    post, path = "/dead-letters/jobs", tag = "dead letters", operation_id = "createDeadLetterJob",
    security(("apiKey" = [])),
    request_body = NewJobPayload,
    responses(
        (status = 200, description = "A dry run: what the job would be about.", body = Preview),
        (status = 202, description = "The job runs.", body = JobDocument,
            headers(("Location" = String, description = "Where the job can be seen."))),
    )
)]
pub(crate) async fn create(
    operator: Operator,
    Payload(mut payload): Payload<NewJobPayload>,
) -> Result<Response, Problem> {
    let note = payload.note.take();
    let (dry_run, app) = (payload.dry_run, &operator.app);
    let new = read(payload)?;
    if dry_run {
        let counting = app.store.preview_dead_letters(&new.selection);
        let preview = http_api::by(operator.deadline, ("the dead letters", "counted"), counting).await?;
        return Ok(Json(preview).into_response());
    }
    let note = match new.action {
        JobAction::Replay => note::optional(note.as_deref())?,
        JobAction::Discard => Some(note::required(note.as_deref())?),
    };
    let act = operator.act(note);
    let creating = app.store.create_dead_letter_job(&new, &act);
    match http_api::by(operator.deadline, ("the job", "made"), creating).await? {
        JobCreated::Done(job) => {
            let location = format!("/dead-letters/jobs/{}", job.id);
            let document = Json(JobDocument::of(*job, act.at));
            Ok((StatusCode::ACCEPTED, [(LOCATION, location)], document).into_response())
        }
        JobCreated::NothingMatches => Err(Problem::new(
            ProblemKind::CONFLICT,
            "no open dead letter matches, so that there is nothing to do",
        )),
        JobCreated::Unknown(id) => Err(Problem::fields(vec![FieldProblem::new(
            "ids",
            format!("no dead letter has the identifier {id}"),
        )])),
    }
}

pub(crate) fn read(payload: NewJobPayload) -> Result<NewDeadLetterJob, Problem> {
    let mut wrong = Vec::new();
    let action = match payload.action.as_deref() {
        Some("replay") => Some(JobAction::Replay),
        Some("discard") => Some(JobAction::Discard),
        _ => {
            wrong.push(FieldProblem::new("action", "must be replay or discard"));
            None
        }
    };
    let per_second = payload.per_second.unwrap_or(PER_SECOND_DEFAULT.into());
    let per_second = u32::try_from(per_second)
        .ok()
        .filter(|rate| (1..=PER_SECOND_MAX).contains(rate));
    if per_second.is_none() {
        let detail = format!("must be between 1 and {PER_SECOND_MAX}");
        wrong.push(FieldProblem::new("perSecond", detail));
    }
    let selection = match (payload.ids, payload.filter) {
        (Some(ids), None) => list(&ids).map_err(|detail| FieldProblem::new("ids", detail)),
        (None, Some(Object(filter))) => filter.read().map(DeadLetterSelection::Matching),
        _ => Err(FieldProblem::new("filter", "is needed, or else ids; not both")),
    };
    match (action, per_second, selection) {
        (Some(action), Some(per_second), Ok(selection)) => Ok(NewDeadLetterJob {
            action,
            selection,
            per_second,
        }),
        (_, _, selection) => {
            wrong.extend(selection.err());
            Err(Problem::fields(wrong))
        }
    }
}

fn list(ids: &[String]) -> Result<DeadLetterSelection, String> {
    if ids.is_empty() || ids.len() > IDS_MAX {
        return Err(format!("must be between 1 and {IDS_MAX} identifiers"));
    }
    let mut seen = HashSet::new();
    let mut chosen = Vec::new();
    for id in ids {
        let id: Uuid = id
            .parse()
            .map_err(|_| format!("{id:?} is no identifier (a UUID)"))?;
        if seen.insert(id) {
            chosen.push(id);
        }
    }
    Ok(DeadLetterSelection::DeadLetters(chosen))
}

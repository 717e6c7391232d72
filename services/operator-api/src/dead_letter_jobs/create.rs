//! Making jobs, and seeing first what they would be about.

use std::collections::HashSet;

use axum::Json;
use axum::response::{IntoResponse, Response};
use domain::dead_letter_job::JobAction;
use http::StatusCode;
use http::header::LOCATION;
use http_api::{FieldCode, FieldProblem, Object, Payload, Problem, ProblemKind};
use serde::Deserialize;
use store::{DeadLetterSelection, JobCare, JobCreated, NewDeadLetterJob, Preview};
use utoipa::ToSchema;
use uuid::Uuid;

use super::choice::FilterPayload;
use super::document::JobDocument;
use crate::note;
use crate::request::Operator;

/// Most dead letters that can be chosen one by one.
const IDS_MAX: usize = 10_000;
/// Up to how many dead letters a job needs no person who has just shown who it is.
const REPLAYED_WITHOUT_ASKING: u64 = 10_000;
const DISCARDED_WITHOUT_ASKING: u64 = 1_000;
/// How fast a job may be, and is when the request does not say.
const PER_SECOND_MAX: u32 = 10_000;
const PER_SECOND_DEFAULT: u32 = 100;
/// Most dead letters that a job can be limited to: far more than there ever are.
const LIMIT_MAX: u32 = 1_000_000_000;
/// Most that are sent again before the others.
const CANARY_MAX: u32 = 1_000;
/// Of a greater share than all there is none.
const PAUSE_ABOVE_MAX: u32 = 99;

/// A job to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = NewDeadLetterJob)]
pub(crate) struct NewJobPayload {
    /// An identifier that the caller has chosen, a UUID of version 7: the same request with it again makes no second job, and is answered with the
    /// first; another request with it is refused.
    #[schema(value_type = Option<Uuid>)]
    pub(crate) id: Option<String>,
    /// What to do to each dead letter: `replay` or `discard`.
    #[schema(value_type = String, example = "replay")]
    pub(crate) action: Option<String>,
    /// Which dead letters, one by one; either this or `filter`.
    #[schema(max_items = 10_000)]
    pub(crate) ids: Option<Vec<String>>,
    /// Which dead letters: all that are open and match. An empty object stands for every open one.
    #[schema(value_type = Option<FilterPayload>)]
    pub(crate) filter: Option<Object<FilterPayload>>,
    /// Why; at most 2,000 bytes. Needed to discard.
    #[schema(max_length = 2_000, example = "Swrve is back since 14:20, see incident 17.")]
    pub(crate) note: Option<String>,
    /// Most dead letters a second.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000, default = 100)]
    pub(crate) per_second: Option<i64>,
    /// Most dead letters that it looks at; all when missing.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1_000_000_000, example = 500)]
    pub(crate) limit: Option<i64>,
    /// Which come first: `oldest` or `newest`.
    #[schema(value_type = Option<String>, default = "oldest", example = "newest")]
    pub(crate) order: Option<String>,
    /// Of a replay: send so many pushes and notifications again first, then wait until it is known what became of them. The job goes on
    /// by itself when none of them failed again, and stays paused when one did, when all of them were cancelled or are not stored any more, or
    /// when it is not known after 24 hours.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1_000, example = 10)]
    pub(crate) canary: Option<i64>,
    /// Of a replay: pause the job when more than so many percent of what it has replayed failed again. Looked at before each batch; from
    /// its start, or from when it was last resumed; and of 20 at least. What failed and is tried again counts as failed until it is
    /// delivered.
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 99, example = 5)]
    pub(crate) pause_above: Option<i64>,
    /// Count, and do nothing. Counts all that match, whatever `limit` says.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// Replays or discards dead letters in bulk.
///
/// Only those that are open and were there when the job was made. Of a fault that may not be mended yet, `canary` and `pauseAbove` keep a replay
/// from making everything fail again. With `dryRun` nothing is changed: the answer says how
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
    let given = payload.note.take();
    let (dry_run, app) = (payload.dry_run, &operator.app);
    let note = match payload.action.as_deref() {
        _ if dry_run => Ok(None),
        Some("discard") => note::required(given.as_deref()).map(Some),
        _ => note::optional(given.as_deref()),
    };
    let (note, new) = note::with(note, read(payload))?;
    if dry_run {
        let counting = async {
            match new.action {
                JobAction::Replay => {
                    let newest_first = new.care.newest_first;
                    app.store.preview_replay(&new.selection, newest_first).await
                }
                JobAction::Discard => app.store.preview_dead_letters(&new.selection).await,
            }
        };
        let preview = http_api::by(operator.deadline, ("the dead letters", "counted"), counting).await?;
        return Ok(Json(preview).into_response());
    }
    // Several at the same time would each be counted without the others.
    let _alone = match operator.is_stale() {
        true => Some(app.stale.lock().await),
        false => None,
    };
    require_recent(&operator, &new).await?;
    let act = operator.act(note);
    let creating = app.store.create_dead_letter_job(&new, &act);
    match http_api::by(operator.deadline, ("the job", "made"), creating).await? {
        JobCreated::Done(job) => {
            let location = format!("/dead-letters/jobs/{}", job.id);
            let document = Json(JobDocument::of(*job, act.at));
            Ok((StatusCode::ACCEPTED, [(LOCATION, location)], document).into_response())
        }
        JobCreated::Taken => Err(Problem::new(
            ProblemKind::CONFLICT,
            "another job has this identifier: it was made with other values, or by another caller",
        )),
        JobCreated::NothingMatches => Err(Problem::new(
            ProblemKind::CONFLICT,
            "no open dead letter matches, so that there is nothing to do",
        )),
        JobCreated::Unknown(id) => Err(Problem::fields(vec![
            FieldProblem::new("ids", format!("no dead letter has the identifier {id}"))
                .coded(FieldCode::UnknownValue),
        ])),
    }
}

/// A large job is dangerous, and so are several that are as large together. How large they are, is counted only for those whom it makes a
/// difference to.
async fn require_recent(operator: &Operator, new: &NewDeadLetterJob) -> Result<(), Problem> {
    if !operator.is_stale() {
        return Ok(());
    }
    let most = match new.action {
        JobAction::Replay => REPLAYED_WITHOUT_ASKING,
        JobAction::Discard => DISCARDED_WITHOUT_ASKING,
    };
    let (by, since) = operator.lately();
    let store = &operator.app.store;
    let counting = store.letters_of_jobs_by(by, new.action, since);
    let before = http_api::by(operator.deadline, ("your jobs", "counted"), counting).await?;
    let counting = store.count_dead_letters_up_to(&new.selection, most + 1);
    let matching = http_api::by(operator.deadline, ("the dead letters", "counted"), counting).await?;
    let about = matching.min(new.care.letters_max.map_or(u64::MAX, u64::from));
    if before.saturating_add(about) > most {
        operator.require_recent()?;
    }
    Ok(())
}

pub(crate) fn read(payload: NewJobPayload) -> Result<NewDeadLetterJob, Problem> {
    let mut wrong = Vec::new();
    let action = match payload.action.as_deref() {
        Some("replay") => Some(JobAction::Replay),
        Some("discard") => Some(JobAction::Discard),
        _ => {
            wrong.push(
                FieldProblem::new("action", "must be replay or discard").coded(FieldCode::UnknownValue),
            );
            None
        }
    };
    let id = payload.id.as_deref().map(identifier).transpose();
    let id = id.map_err(|problem| wrong.push(problem)).ok().flatten();
    let per_second = rate(payload.per_second.unwrap_or(PER_SECOND_DEFAULT.into()));
    let per_second = per_second.map_err(|problem| wrong.push(problem)).ok();
    let care = care(&payload, action, &mut wrong);
    let selection = match (payload.ids, payload.filter) {
        (Some(ids), None) => list(&ids).map_err(|detail| vec![FieldProblem::new("ids", detail)]),
        (None, Some(Object(filter))) => filter.read().map(DeadLetterSelection::Matching),
        (ids, _) => {
            let detail = "is needed, or else ids; not both";
            let code = if ids.is_some() {
                FieldCode::Conflict
            } else {
                FieldCode::Missing
            };
            Err(vec![FieldProblem::new("filter", detail).coded(code)])
        }
    };
    match (action, per_second, selection) {
        (Some(action), Some(per_second), Ok(selection)) if wrong.is_empty() => Ok(NewDeadLetterJob {
            id,
            action,
            selection,
            per_second,
            care,
        }),
        (_, _, selection) => {
            wrong.extend(selection.err().into_iter().flatten());
            Err(Problem::fields(wrong))
        }
    }
}

/// An identifier that a caller has chosen: of the version by which lists are in the order of time.
fn identifier(id: &str) -> Result<Uuid, FieldProblem> {
    let read = id.parse::<Uuid>().ok();
    let read = read.filter(|id| id.get_version_num() == 7);
    read.ok_or_else(|| FieldProblem::new("id", "must be a UUID of version 7").coded(FieldCode::WrongFormat))
}

/// The rate that a request asks for.
pub(super) fn rate(per_second: i64) -> Result<u32, FieldProblem> {
    between("perSecond", per_second, (1, PER_SECOND_MAX))
}

/// A number within these bounds, both included.
pub(crate) fn between(
    name: &'static str,
    number: i64,
    (least, most): (u32, u32),
) -> Result<u32, FieldProblem> {
    let number = u32::try_from(number).ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| {
        FieldProblem::new(name, format!("must be between {least} and {most}")).between(least, most)
    })
}

/// How careful the job is to be.
fn care(payload: &NewJobPayload, action: Option<JobAction>, wrong: &mut Vec<FieldProblem>) -> JobCare {
    let mut number = |name: &'static str, given: Option<i64>, bounds: (u32, u32)| {
        let read = between(name, given?, bounds);
        read.map_err(|problem| wrong.push(problem)).ok()
    };
    let letters_max = number("limit", payload.limit, (1, LIMIT_MAX));
    let canary = number("canary", payload.canary, (1, CANARY_MAX));
    let pause_above = number("pauseAbove", payload.pause_above, (0, PAUSE_ABOVE_MAX));
    let newest_first = match payload.order.as_deref() {
        None | Some("oldest") => false,
        Some("newest") => true,
        Some(_) => {
            wrong.push(FieldProblem::new("order", "must be oldest or newest").coded(FieldCode::UnknownValue));
            false
        }
    };
    if action == Some(JobAction::Discard) {
        let given = [("canary", canary), ("pauseAbove", pause_above)];
        for (name, _) in given.into_iter().filter(|(_, value)| value.is_some()) {
            let detail = "goes with replay only: what is discarded is not sent again, and cannot fail";
            wrong.push(FieldProblem::new(name, detail).coded(FieldCode::Conflict));
        }
    }
    JobCare {
        letters_max,
        newest_first,
        canary,
        pause_above,
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

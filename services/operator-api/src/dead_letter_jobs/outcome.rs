//! `GET /dead-letters/jobs/{id}/outcome`: what became of what a job has made due again.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http_api::{Id, Problem};
use serde::Serialize;
use store::{Fates, JobOutcome, KindOutcome};
use utoipa::ToSchema;

use super::unknown;
use crate::app::App;
use crate::examined::not_indexed;
use crate::request::Viewer;

/// What became of what a job has made due again: pushes and notifications. What failed again and was replayed later by others has failed again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterJobOutcome)]
pub(crate) struct OutcomeDocument {
    /// Where they stand.
    #[serde(flatten)]
    pub(crate) total: FatesDocument,
    /// How many of the job's dead letters were looked at: all, or a sample of 20,000, in a list of 20,000 of all its jobs.
    pub(crate) examined: u64,
    /// Whether these were all.
    pub(crate) whole: bool,
    /// The same by the kind of failure that the dead letters were of.
    pub(crate) by_fingerprint: Vec<KindDocument>,
}

/// How many pushes and notifications stand where.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterJobFates)]
pub(crate) struct FatesDocument {
    /// Delivered.
    pub(crate) delivered: u64,
    /// Not ended yet: they will be tried, or tried again.
    pub(crate) waiting: u64,
    /// Failed or given up again, whatever came of a later replay; each got a dead letter again.
    pub(crate) failed_again: u64,
    /// Cancelled by an operator since.
    pub(crate) cancelled: u64,
    /// Not stored any more.
    pub(crate) gone: u64,
}

/// What became of those whose failure was of one kind.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterJobKindOutcome)]
pub(crate) struct KindDocument {
    /// `push` or `reseller`.
    #[schema(example = "push")]
    pub(crate) lane: &'static str,
    /// The kind that their dead letters were of.
    #[schema(example = "swrve/503")]
    pub(crate) fingerprint: String,
    /// Where they stand.
    #[serde(flatten)]
    pub(crate) fates: FatesDocument,
    /// How those failed that failed again: how many by kind of failure.
    #[schema(value_type = BTreeMap<String, u64>, example = json!({"swrve/401": 3}))]
    pub(crate) failures: BTreeMap<String, u64>,
}

impl From<Fates> for FatesDocument {
    fn from(fates: Fates) -> Self {
        Self {
            delivered: fates.delivered,
            waiting: fates.waiting,
            failed_again: fates.failed,
            cancelled: fates.cancelled,
            gone: fates.gone,
        }
    }
}

impl From<KindOutcome> for KindDocument {
    fn from(kind: KindOutcome) -> Self {
        Self {
            lane: kind.lane.as_str(),
            fingerprint: kind.fingerprint,
            fates: kind.fates.into(),
            failures: kind.failures,
        }
    }
}

impl From<JobOutcome> for OutcomeDocument {
    fn from(outcome: JobOutcome) -> Self {
        Self {
            total: outcome.total().into(),
            examined: outcome.examined,
            whole: outcome.is_whole,
            by_fingerprint: outcome.kinds.into_iter().map(KindDocument::from).collect(),
        }
    }
}

/// Tells what became of what a job has made due again.
///
/// A job is through when everything is due again; what is delivered and what fails again is known later. Of a job that discards there is
/// nothing to tell.
#[utoipa::path(
    get, path = "/dead-letters/jobs/{id}/outcome", tag = "dead letters", operation_id = "findDeadLetterJobOutcome",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The job.")),
    responses((status = 200, description = "Where everything stands now.", body = OutcomeDocument))
)]
pub(crate) async fn outcome(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Id(id): Id,
) -> Result<Json<OutcomeDocument>, Problem> {
    let finding = async {
        match app.store.find_dead_letter_job(id).await? {
            Some(_) => app.store.dead_letter_job_outcome(id).await.map(Some),
            None => Ok(None),
        }
    };
    let found = http_api::by(viewer.deadline, ("the outcome", "read"), finding).await?;
    let outcome = found.ok_or_else(unknown)?.ok_or_else(not_indexed)?;
    Ok(Json(outcome.into()))
}

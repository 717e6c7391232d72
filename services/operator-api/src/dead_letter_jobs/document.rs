//! A job as the API shows it.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use domain::dead_letter_job::{JobAction, JobPause, JobStatus};
use domain::subscription::RecoveryEnd;
use serde::Serialize;
use serde_json::Value;
use store::{DeadLetterJob, DeadLetterSelection};
use utoipa::ToSchema;
use uuid::Uuid;

use super::outcome::OutcomeDocument;

/// A job about dead letters.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterJob)]
pub(crate) struct JobDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// What it does to each dead letter: `replay` or `discard`.
    #[schema(example = "replay")]
    pub(crate) action: &'static str,
    /// RUNNING, PAUSED, COMPLETED or CANCELLED.
    #[schema(example = "RUNNING")]
    pub(crate) status: &'static str,
    /// Which open dead letters it is about, if they were chosen by a filter.
    #[schema(value_type = Option<Object>, example = json!({"lane": "push", "fingerprint": "swrve/503"}))]
    pub(crate) filter: Option<Value>,
    /// Which dead letters it is about, if they were chosen one by one.
    pub(crate) ids: Option<Vec<Uuid>>,
    /// Why it was made.
    pub(crate) note: Option<String>,
    /// Most dead letters a second.
    pub(crate) per_second: u32,
    /// How many dead letters there were when it was made; of a recovery counted up to 100,000. It may look at fewer, if others
    /// resolve some meanwhile.
    pub(crate) matching: u64,
    /// How many it has looked at.
    pub(crate) examined: u64,
    /// How many it has resolved. A replay resolves every open dead letter about the same push or notification.
    pub(crate) done: u64,
    /// How many it has left open, by reason: `UNFINISHED` (will be sent anyhow), `DELIVERED`, `CANCELLED`, `GONE` (not
    /// stored any more), `SUBSCRIPTION_INACTIVE`, `MALFORMED` (about nothing that is known), `OFTEN_RECOVERED`
    /// (sent again by itself three times before); and `RESOLVED` for what another request has resolved at the same time.
    #[schema(value_type = BTreeMap<String, u64>, example = json!({"SUBSCRIPTION_INACTIVE": 3}))]
    pub(crate) skipped: BTreeMap<String, u64>,
    /// Who made it.
    pub(crate) created_by: String,
    /// When.
    pub(crate) created_at: DateTime<Utc>,
    /// When it last got on, or was told to.
    pub(crate) updated_at: DateTime<Utc>,
    /// When it ended.
    pub(crate) finished_at: Option<DateTime<Utc>>,
    /// The subscription whose outage is over, of a job that Postrider has made by itself: a recovery. Of what the filter
    /// chooses it is about what the endpoint has failed at alone.
    pub(crate) recovers: Option<Uuid>,
    /// Why Postrider has cancelled it: FAILING (the endpoint fails again), INACTIVE (its subscription is not active any more)
    /// or SWITCHED_OFF. What is left of the first two is for the next recovery.
    #[schema(example = "FAILING")]
    pub(crate) ended_because: Option<&'static str>,
    /// Who has cancelled it, if an operator did; `finishedAt` says when. `matching` less `examined` dead letters are left untouched then.
    #[schema(example = "maria (019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d)")]
    pub(crate) cancelled_by: Option<String>,
    /// Most dead letters that it looks at.
    pub(crate) limit: Option<u32>,
    /// Which come first: `oldest` or `newest`.
    #[schema(example = "oldest")]
    pub(crate) order: &'static str,
    /// So many pushes and notifications are sent again first.
    pub(crate) canary: Option<u32>,
    /// It is paused when more than so many percent of what it has replayed failed again, or failed and is tried again.
    pub(crate) pause_above: Option<u32>,
    /// Why it is paused, while it is: OPERATOR (one has paused it), CANARY (until it is known what became of the first; it goes on by itself
    /// when none of them failed again), CANARY_FAILED (one of the first failed again, none was delivered, or it was not known after 24 hours) or FAILED_AGAIN (more than
    /// `pauseAbove` percent failed again).
    #[schema(example = "CANARY_FAILED")]
    pub(crate) paused_because: Option<&'static str>,
    /// Until when the first ones are waited for at most, while they are.
    pub(crate) canary_until: Option<DateTime<Utc>>,
    /// When it will have been through at its rate, while it runs.
    pub(crate) eta: Option<DateTime<Utc>>,
    /// In a list, what became of what a replay has made due again, of a sample if that is much; null elsewhere, and while the index that finds it
    /// is still being made.
    pub(crate) outcome: Option<OutcomeDocument>,
}

impl JobDocument {
    pub(super) fn of(job: DeadLetterJob, now: DateTime<Utc>) -> Self {
        let left = job.matching.saturating_sub(job.examined);
        let seconds = i64::try_from(left.div_ceil(u64::from(job.per_second.max(1)))).unwrap_or(i64::MAX);
        let eta = TimeDelta::try_seconds(seconds).and_then(|left| now.checked_add_signed(left));
        let (filter, ids) = match job.selection {
            DeadLetterSelection::DeadLetters(ids) => (None, (!ids.is_empty()).then_some(ids)),
            DeadLetterSelection::Matching(filter) => (Some(filter.to_json()), None),
        };
        Self {
            id: job.id,
            action: name(job.action),
            status: job.status.as_str(),
            filter,
            ids,
            note: job.note,
            per_second: job.per_second,
            matching: job.matching,
            examined: job.examined,
            done: job.done,
            skipped: job.skipped,
            created_by: job.created_by,
            created_at: job.created_at,
            updated_at: job.updated_at,
            finished_at: job.finished_at,
            recovers: job.recovers,
            limit: job.letters_max,
            order: if job.newest_first { "newest" } else { "oldest" },
            canary: job.canary,
            pause_above: job.pause_above,
            paused_because: (job.status == JobStatus::Paused)
                .then(|| job.paused_because.map_or("OPERATOR", JobPause::as_str)),
            ended_because: job.ended_because.map(RecoveryEnd::as_str),
            cancelled_by: job.cancelled_by,
            canary_until: (job.paused_because == Some(JobPause::Canary))
                .then(|| job.updated_at + store::CANARY_WAIT),
            eta: eta.filter(|_| job.status == JobStatus::Running),
            outcome: None,
        }
    }
}

/// What the API calls an action.
fn name(action: JobAction) -> &'static str {
    match action {
        JobAction::Replay => "replay",
        JobAction::Discard => "discard",
    }
}

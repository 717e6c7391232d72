//! What became of the pushes and notifications that a job has made due again.

use std::collections::{BTreeMap, HashMap};

use domain::named;
use serde::Serialize;
use uuid::Uuid;

use crate::indexes::LateIndex;
use crate::read::{Count, Name};
use crate::{DeadLetterLane, Error, Store};

/// Most dead letters of jobs that are looked at, the same number of each. Of more, those with the least identifiers are: a sample, since
/// identifiers are random.
const EXAMINED_MAX: i64 = 20_000;

/// What came of making a push or a notification due again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum Fate {
    /// Delivered.
    Delivered,
    /// Not ended yet.
    Waiting,
    /// Failed or given up again, whatever came of a later replay.
    FailedAgain,
    /// Cancelled since.
    Cancelled,
    /// Not stored any more.
    Gone,
}

named!(Fate, "outcome of a replay");

/// How many pushes and notifications stand where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fates {
    /// Delivered.
    pub delivered: u64,
    /// Not ended yet.
    pub waiting: u64,
    /// Failed or given up again, whatever came of a later replay.
    pub failed: u64,
    /// Cancelled since.
    pub cancelled: u64,
    /// Not stored any more.
    pub gone: u64,
}

/// What became of those whose failure was of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindOutcome {
    /// Their lane.
    pub lane: DeadLetterLane,
    /// The kind that their dead letter was of.
    pub fingerprint: String,
    /// Where they stand.
    pub fates: Fates,
    /// How those have failed that failed again: how many dead letters there are of each kind.
    pub failures: BTreeMap<String, u64>,
}

/// What became of what a job has made due again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobOutcome {
    /// By the kind of failure, in the order of its name.
    pub kinds: Vec<KindOutcome>,
    /// How many of the job's dead letters were looked at.
    pub examined: u64,
    /// Whether these were all.
    pub is_whole: bool,
}

impl Fates {
    fn count(&mut self, fate: Fate, number: u64) {
        let place = match fate {
            Fate::Delivered => &mut self.delivered,
            Fate::Waiting => &mut self.waiting,
            Fate::FailedAgain => &mut self.failed,
            Fate::Cancelled => &mut self.cancelled,
            Fate::Gone => &mut self.gone,
        };
        *place += number;
    }
}

impl JobOutcome {
    /// Where all of them stand.
    pub fn total(&self) -> Fates {
        self.kinds.iter().fold(Fates::default(), |sum, kind| Fates {
            delivered: sum.delivered + kind.fates.delivered,
            waiting: sum.waiting + kind.fates.waiting,
            failed: sum.failed + kind.fates.failed,
            cancelled: sum.cancelled + kind.fates.cancelled,
            gone: sum.gone + kind.fates.gone,
        })
    }
}

impl Store {
    /// What became of what the job `id` has made due again. `None` while the index that finds it is still being made.
    pub async fn dead_letter_job_outcome(&self, id: Uuid) -> Result<Option<JobOutcome>, Error> {
        let outcomes = self.dead_letter_job_outcomes(&[id]).await?;
        Ok(outcomes.map(|mut outcomes| outcomes.remove(&id).unwrap_or_default()))
    }

    /// The same of several jobs, by job. Together they are looked at as deep as one alone.
    pub async fn dead_letter_job_outcomes(
        &self,
        jobs: &[Uuid],
    ) -> Result<Option<HashMap<Uuid, JobOutcome>>, Error> {
        if !self.has_index(LateIndex::DeadLettersByJob).await? {
            return Ok(None);
        }
        let each = EXAMINED_MAX / i64::try_from(jobs.len().max(1)).unwrap_or(EXAMINED_MAX);
        // Several dead letters may be about one push; the index gives those of the job, and the keys lead to the rest.
        let rows = sqlx::query_file!("queries/dead_letters/job_outcomes.sql", jobs, each + 1)
            .fetch_all(&self.pool)
            .await?;
        let mut outcomes: HashMap<Uuid, JobOutcome> =
            jobs.iter().map(|job| (*job, JobOutcome::default())).collect();
        for row in rows {
            let outcome = outcomes.entry(row.job).or_default();
            let lane = DeadLetterLane::from(row.lane);
            outcome.examined += u64::from(row.letters);
            let is_same = |kind: &KindOutcome| kind.lane == lane && kind.fingerprint == row.fingerprint;
            if !outcome.kinds.last().is_some_and(is_same) {
                outcome.kinds.push(KindOutcome {
                    lane,
                    fingerprint: row.fingerprint,
                    fates: Fates::default(),
                    failures: BTreeMap::new(),
                });
            }
            let Some(kind) = outcome.kinds.last_mut() else {
                continue;
            };
            let count = u64::from(row.count);
            kind.fates.count(row.fate.into(), count);
            if let Some(failure) = row.failure {
                *kind.failures.entry(failure).or_default() += count;
            }
        }
        for outcome in outcomes.values_mut() {
            outcome.is_whole = outcome.examined <= each.unsigned_abs();
        }
        Ok(Some(outcomes))
    }
}

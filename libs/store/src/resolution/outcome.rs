//! What became of the pushes and notifications that a job has made due again.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::indexes::LateIndex;
use crate::{DeadLetterLane, Error, Store, stored};

/// Most dead letters of a job that are looked at. Of more, those with the least identifiers are: a sample, since identifiers are random.
const EXAMINED_MAX: i64 = 20_000;

/// How many pushes and notifications stand where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fates {
    /// Delivered.
    pub delivered: u64,
    /// Not ended yet.
    pub waiting: u64,
    /// Failed or given up again.
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
    fn count(&mut self, fate: &str, number: u64) {
        let place = match fate {
            "SENT" => &mut self.delivered,
            "CANCELLED" => &mut self.cancelled,
            "FAILED" | "GIVEN_UP" => &mut self.failed,
            "GONE" => &mut self.gone,
            _ => &mut self.waiting,
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
    /// Where that stands now what the job `id` has made due again. `None` while the index that finds it is still being made.
    pub async fn dead_letter_job_outcome(&self, id: Uuid) -> Result<Option<JobOutcome>, Error> {
        if !self.has_index(LateIndex::DeadLettersByJob).await? {
            return Ok(None);
        }
        // Several dead letters may be about one push; the index gives those of the job, and the keys lead to the rest.
        let rows = sqlx::query!(
            r#"
            WITH letters AS (
                SELECT lane, fingerprint, push_id, notification_id FROM dead_letters
                WHERE job_id = $1 AND state = 'REPLAYED' ORDER BY id LIMIT $2),
            subjects AS (
                SELECT coalesce(push_id, notification_id) AS subject, min(lane) AS lane, min(fingerprint) AS fingerprint,
                       count(*) AS letters
                FROM letters GROUP BY 1),
            fates AS (
                SELECT s.*, coalesce(
                    (SELECT CASE WHEN p.status = 'GIVEN_UP' AND p.reason = 'CANCELLED' THEN 'CANCELLED' ELSE p.status END
                     FROM push_notifications p WHERE p.id = s.subject),
                    (SELECT CASE WHEN n.status = 'GIVEN_UP' AND n.reason = 'CANCELLED' THEN 'CANCELLED' ELSE n.status END
                     FROM notifications n WHERE n.id = s.subject), 'GONE') AS fate
                FROM subjects s),
            ends AS (
                SELECT f.*, CASE WHEN f.fate IN ('FAILED', 'GIVEN_UP') THEN coalesce(
                    (SELECT d.fingerprint FROM dead_letters d WHERE d.push_id = f.subject AND d.state = 'OPEN' LIMIT 1),
                    (SELECT d.fingerprint FROM dead_letters d WHERE d.notification_id = f.subject AND d.state = 'OPEN' LIMIT 1)
                ) END AS failure
                FROM fates f)
            SELECT lane AS "lane!", fingerprint AS "fingerprint!", fate AS "fate!", failure, count(*) AS "count!",
                   sum(letters)::bigint AS "letters!"
            FROM ends GROUP BY lane, fingerprint, fate, failure ORDER BY lane, fingerprint
            "#,
            id,
            EXAMINED_MAX + 1,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut outcome = JobOutcome::default();
        for row in rows {
            let lane = stored("lane", &row.lane)?;
            outcome.examined += row.letters.unsigned_abs();
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
            kind.fates.count(&row.fate, row.count.unsigned_abs());
            if let Some(failure) = row.failure {
                *kind.failures.entry(failure).or_default() += row.count.unsigned_abs();
            }
        }
        outcome.is_whole = outcome.examined <= EXAMINED_MAX.unsigned_abs();
        Ok(Some(outcome))
    }
}

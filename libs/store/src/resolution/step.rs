//! A step of a job: resolves the next dead letters, as many as its rate allows. The cursor and the counters move in the same
//! transaction, so that a crash repeats nothing and skips nothing; two replicas at once work one after the other.

use chrono::{DateTime, Utc};
use domain::dead_letter_job::JobAction;
use domain::subscription::RateBudget;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::apply::{self, Applied, Skipped};
use super::careful::{self, Care, JobCare};
use super::job::counts;
use super::recovery::{self, Bearing, Recovery};
use super::selection::{self, Cursor, DeadLetterSelection, Part};
use crate::{Act, Error, Store, stored};

/// Dead letters looked at in one step.
const EXAMINED_MAX: usize = 500;

/// What a step has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeadLetterStep {
    /// Dead letters looked at.
    pub examined: u64,
    /// Dead letters that were replayed.
    pub replayed: u64,
    /// Dead letters that were discarded.
    pub discarded: u64,
    /// Whether the next step would find something to do at once.
    pub more: bool,
}

/// A job that this transaction has to itself.
struct Held {
    id: Uuid,
    action: JobAction,
    selection: DeadLetterSelection,
    note: Option<String>,
    created_by: String,
    per_second: u32,
    until: DateTime<Utc>,
    cursor: Option<Cursor>,
    paced_to: DateTime<Utc>,
    skipped: Value,
    recovery: Option<Recovery>,
    care: Care,
}

impl Store {
    /// Takes a job one step further, as far as its rate allows at `now`. Does nothing when another one is at it, or when
    /// it does not run.
    pub async fn advance_dead_letter_job(
        &self,
        id: Uuid,
        now: DateTime<Utc>,
    ) -> Result<DeadLetterStep, Error> {
        let mut transaction = self.pool.begin().await?;
        let Some(job) = hold(&mut transaction, id).await? else {
            return Ok(DeadLetterStep::default());
        };
        if !job.care.may_get_on(&mut transaction, id, now).await? {
            transaction.commit().await?;
            return Ok(DeadLetterStep::default());
        }
        let Some((limit, rate_budget)) = self.room(&mut transaction, &job, now).await? else {
            // Not left to the drop, which gives the lock back some time later: the next step would pass the job over.
            transaction.commit().await?;
            return Ok(DeadLetterStep::default());
        };
        let part = Part {
            cursor: job.cursor,
            newest_first: job.care.terms.newest_first,
            until: job.until,
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
            by_endpoint: job.recovery.is_some(),
        };
        let letters = selection::next(&mut transaction, &job.selection, part).await?;
        let applied = apply(&mut transaction, &job, &letters, now).await?;
        if job.recovery.is_some() && applied.skipped.contains_key(&Skipped::SubscriptionInactive) {
            // It ceased to be active a moment ago: the next step ends the job, and these dead letters are for the next recovery.
            transaction.rollback().await?;
            return Ok(DeadLetterStep::default());
        }
        let finished = letters.len() < limit || job.care.is_through_with(letters.len());
        let progress = Progress {
            cursor: letters.last().copied(),
            examined: letters.len(),
            paced_to: rate_budget.paced_to(applied.effects),
            finished,
        };
        record(&mut transaction, &job, &applied, &progress, now).await?;
        transaction.commit().await?;
        let resolved = applied.dead_letters.len() as u64;
        Ok(DeadLetterStep {
            examined: letters.len() as u64,
            replayed: if job.action == JobAction::Replay {
                resolved
            } else {
                0
            },
            discarded: if job.action == JobAction::Discard {
                resolved
            } else {
                0
            },
            more: !finished,
        })
    }
}

impl Store {
    /// How many dead letters a job may look at now, by its rate, and a recovery by the state of its subscription, too. `None` when
    /// there is nothing to do.
    async fn room(
        &self,
        connection: &mut PgConnection,
        job: &Held,
        now: DateTime<Utc>,
    ) -> Result<Option<(usize, RateBudget)>, Error> {
        let bearing = match job.recovery {
            Some(recovery) => {
                let rates = (job.per_second, self.line_terms.requests_per_second);
                recovery::bearing(connection, recovery, rates, job.paced_to, now).await?
            }
            None => {
                let rate_budget = RateBudget::at(now, job.paced_to, job.per_second);
                Bearing::On(rate_budget.count, rate_budget)
            }
        };
        match bearing {
            Bearing::On(0, rate_budget) => {
                // A clock that was turned back would otherwise stop the job until it is where it was.
                if job.paced_to > now {
                    pace(connection, job.id, rate_budget.paced_to(0)).await?;
                }
                Ok(None)
            }
            Bearing::On(room, rate_budget) => Ok(Some((job.care.room(room.min(EXAMINED_MAX)), rate_budget))),
            Bearing::Waits => Ok(None),
            Bearing::Ends(why) => {
                recovery::end(connection, job.id, why, &job.act(now)).await?;
                Ok(None)
            }
        }
    }
}

async fn hold(connection: &mut PgConnection, id: Uuid) -> Result<Option<Held>, Error> {
    let row = sqlx::query!(
        r#"
        SELECT action, filter, note, created_by, per_second, until, cursor_at, cursor_id, paced_to, skipped, recovers,
               probe, examined, done, letters_max, newest_first, canary, canary_due, canary_passed, pause_above,
               judged_done, status = 'PAUSED' AS "waits!", updated_at
        FROM dead_letter_jobs
        WHERE id = $1 AND (status = 'RUNNING' OR status = 'PAUSED' AND paused_because = 'CANARY')
        FOR UPDATE SKIP LOCKED
        "#,
        id,
    )
    .fetch_optional(connection)
    .await?;
    row.map(|row| {
        Ok(Held {
            id,
            action: stored("job action", &row.action)?,
            selection: DeadLetterSelection::from_json(&row.filter)?,
            note: row.note,
            created_by: row.created_by,
            per_second: row.per_second.unsigned_abs(),
            until: row.until,
            cursor: row.cursor_at.zip(row.cursor_id),
            paced_to: row.paced_to,
            skipped: row.skipped,
            recovery: row.recovers.map(|subscription| Recovery {
                subscription,
                probe: row.probe,
            }),
            care: Care {
                terms: JobCare {
                    letters_max: row.letters_max.map(i32::unsigned_abs),
                    newest_first: row.newest_first,
                    canary: row.canary.map(i32::unsigned_abs),
                    pause_above: row.pause_above.map(i32::unsigned_abs),
                },
                examined: row.examined.unsigned_abs(),
                done: row.done.unsigned_abs(),
                canary_due: row.canary_due,
                canary_passed: row.canary_passed,
                waits: row.waits,
                updated_at: row.updated_at,
                judged_done: row.judged_done.unsigned_abs(),
            },
        })
    })
    .transpose()
}

async fn apply(
    connection: &mut PgConnection,
    job: &Held,
    letters: &[Cursor],
    now: DateTime<Utc>,
) -> Result<Applied, Error> {
    let ids: Vec<Uuid> = letters.iter().map(|(_, id)| *id).collect();
    let mut open = apply::lock(connection, &ids).await?;
    let locked = open.len();
    if job.recovery.is_some() {
        let about: Vec<Uuid> = open.iter().filter_map(|letter| letter.notification).collect();
        let often = recovery::often_recovered(connection, &about).await?;
        open.retain(|letter| letter.notification.is_none_or(|id| !often.contains(&id)));
    }
    let act = job.act(now);
    let mut applied = match job.action {
        JobAction::Replay => apply::replay(connection, &open, &act, Some(job.id)).await?,
        JobAction::Discard => apply::discard(connection, &open, &act, Some(job.id)).await?,
    };
    if locked < ids.len() {
        let resolved = (ids.len() - locked) as u64;
        applied.skipped.insert(Skipped::Resolved, resolved);
    }
    if open.len() < locked {
        let often = (locked - open.len()) as u64;
        applied.skipped.insert(Skipped::OftenRecovered, often);
    }
    if let (Some(Recovery { probe: None, .. }), Some(first)) = (job.recovery, applied.first_due(&open)) {
        recovery::note_probe(connection, job.id, first).await?;
    }
    if job.care.terms.canary.is_some() && !job.care.canary_passed {
        careful::note_firsts(connection, job.id, &applied.due).await?;
    }
    Ok(applied)
}

impl Held {
    /// What the job does is done in the name of its creator.
    fn act(&self, now: DateTime<Utc>) -> Act<'_> {
        Act {
            by: &self.created_by,
            note: self.note.as_deref(),
            at: now,
        }
    }
}

async fn pace(connection: &mut PgConnection, id: Uuid, to: DateTime<Utc>) -> Result<(), Error> {
    sqlx::query!("UPDATE dead_letter_jobs SET paced_to = $2 WHERE id = $1", id, to)
        .execute(connection)
        .await?;
    Ok(())
}

struct Progress {
    cursor: Option<Cursor>,
    examined: usize,
    paced_to: DateTime<Utc>,
    finished: bool,
}

async fn record(
    connection: &mut PgConnection,
    job: &Held,
    applied: &Applied,
    progress: &Progress,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let mut skipped = counts(&job.skipped);
    for (reason, count) in &applied.skipped {
        *skipped.entry(reason.as_str().to_owned()).or_default() += count;
    }
    let counted = sqlx::query!(
        r#"
        UPDATE dead_letter_jobs
        SET cursor_at = coalesce($2, cursor_at), cursor_id = coalesce($3, cursor_id), examined = examined + $4,
            done = done + $5, skipped = $6, paced_to = $7, updated_at = $8, steps = steps + 1,
            status = CASE WHEN $9 THEN 'COMPLETED' ELSE status END,
            finished_at = CASE WHEN $9 THEN $8::timestamptz END
        WHERE id = $1
        RETURNING examined, done
        "#,
        job.id,
        progress.cursor.map(|(at, _)| at),
        progress.cursor.map(|(_, id)| id),
        i64::try_from(progress.examined).unwrap_or(i64::MAX),
        i64::try_from(applied.dead_letters.len()).unwrap_or(i64::MAX),
        json!(skipped),
        progress.paced_to,
        now,
        progress.finished,
    )
    .fetch_one(&mut *connection)
    .await?;
    if !progress.finished {
        return Ok(());
    }
    let details = json!({ "examined": counted.examined, "done": counted.done, "skipped": skipped });
    let act = job.act(now);
    let entry = act.entry("dead-letter-job.complete", super::job(job.id), details);
    entry.record(connection).await
}

//! What makes a job careful: it is about so many dead letters at most, sends a few again before the others, and stops itself when too much
//! of what it has sent again fails again. All of it is decided by the job's row, in the transaction of a step.

use chrono::{DateTime, TimeDelta, Utc};
use domain::dead_letter_job::{JobPause, fails_too_often};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::recovery::BY;
use crate::{Act, Error};

/// For how long the first ones are waited for. What is not known of them by then is for an operator to judge.
pub const CANARY_WAIT: TimeDelta = TimeDelta::hours(24);

/// How many of what a job has replayed are looked at to know which part of it failed since and is tried again.
const TRIED_SAMPLE: i64 = 500;
/// Of fewer nothing is said about all.
const TRIED_LEAST: u64 = 20;

/// How careful a job is. What is missing restricts nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobCare {
    /// Most dead letters that it looks at.
    pub letters_max: Option<u32>,
    /// Whether the newest come first, and not the oldest.
    pub newest_first: bool,
    /// So many pushes and notifications are sent again first; the others wait until it is known what became of those.
    pub canary: Option<u32>,
    /// It pauses itself when more than so many percent of what it has replayed failed again, or failed since and is tried again.
    pub pause_above: Option<u32>,
}

/// What a step needs to know of a careful job.
pub(super) struct Care {
    pub(super) terms: JobCare,
    /// Dead letters looked at so far.
    pub(super) examined: u64,
    /// Dead letters resolved so far.
    pub(super) done: u64,
    /// The first that were made due.
    pub(super) canary_due: Vec<Uuid>,
    pub(super) canary_passed: bool,
    /// Whether the job has paused itself until it is known what became of them.
    pub(super) waits: bool,
    /// When it last got on, or was told to; of one that waits, when it began to.
    pub(super) updated_at: DateTime<Utc>,
    /// Dead letters resolved when what fails again began to be counted.
    pub(super) judged_done: u64,
}

/// Where the first ones stand.
struct Firsts {
    delivered: u64,
    failed: u64,
    waiting: u64,
}

impl Care {
    /// How many more of the first ones there are to be; `None` when the others follow already.
    fn canary_left(&self) -> Option<u64> {
        let canary = self.terms.canary.filter(|_| !self.canary_passed)?;
        Some(u64::from(canary).saturating_sub(self.canary_due.len() as u64))
    }

    /// Of `room` dead letters those that the job may look at now.
    pub(super) fn room(&self, room: usize) -> usize {
        let bounds = [self.left(), self.canary_left()];
        let least = bounds.into_iter().flatten().min().unwrap_or(u64::MAX);
        usize::try_from(least).map_or(room, |least| room.min(least))
    }

    /// How many dead letters it may look at still, if it may not look at all.
    fn left(&self) -> Option<u64> {
        let most = self.terms.letters_max?;
        Some(u64::from(most).saturating_sub(self.examined))
    }

    /// Whether it is through once it has looked at so many more.
    pub(super) fn is_through_with(&self, examined: usize) -> bool {
        self.left().is_some_and(|left| examined as u64 >= left)
    }

    /// Decides whether the job may get on now, and notes it: it waits for the first ones, goes on since those are delivered, or stops.
    pub(super) async fn may_get_on(
        &self,
        connection: &mut PgConnection,
        job: Uuid,
        now: DateTime<Utc>,
    ) -> Result<bool, Error> {
        if self.canary_left() == Some(0) {
            self.judge_firsts(connection, job, now).await?;
            return Ok(false);
        }
        if let Some(percent) = self.terms.pause_above {
            return self.judge_share(connection, job, percent, now).await;
        }
        Ok(true)
    }

    async fn judge_firsts(
        &self,
        connection: &mut PgConnection,
        job: Uuid,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let firsts = firsts(connection, &self.canary_due).await?;
        let mut details = json!({
            "canary": self.canary_due.len(), "delivered": firsts.delivered, "failedAgain": firsts.failed,
        });
        // First ones that were all cancelled, or are not stored any more, say nothing about the others.
        if firsts.failed > 0 || firsts.waiting + firsts.delivered == 0 {
            return pause(connection, job, (JobPause::CanaryFailed, details), now).await;
        }
        if firsts.waiting > 0 {
            return match self.waits {
                true if now - self.updated_at > CANARY_WAIT => {
                    details["waiting"] = json!(firsts.waiting);
                    pause(connection, job, (JobPause::CanaryFailed, details), now).await
                }
                true => Ok(()),
                false => pause(connection, job, (JobPause::Canary, details), now).await,
            };
        }
        go_on(connection, job, now).await?;
        if self.waits {
            let entry = by_itself(now).entry("dead-letter-job.resume", super::job(job), details);
            entry.record(connection).await?;
        }
        Ok(())
    }

    async fn judge_share(
        &self,
        connection: &mut PgConnection,
        job: Uuid,
        percent: u32,
        now: DateTime<Utc>,
    ) -> Result<bool, Error> {
        let replayed = self.done.saturating_sub(self.judged_done);
        if replayed == 0 {
            return Ok(true);
        }
        let failed = count_failures(connection, job).await?;
        let tried = count_tried(connection, job, replayed).await?;
        if !fails_too_often(percent, failed + tried, replayed) {
            return Ok(true);
        }
        let details = json!({ "pauseAbove": percent, "replayed": replayed, "failedAgain": failed, "triedAgain": tried });
        pause(connection, job, (JobPause::FailedAgain, details), now).await?;
        Ok(false)
    }
}

/// What a job does to itself has no person behind it.
fn by_itself(now: DateTime<Utc>) -> Act<'static> {
    Act {
        by: BY,
        note: None,
        at: now,
    }
}

async fn firsts(connection: &mut PgConnection, due: &[Uuid]) -> Result<Firsts, Error> {
    let row = sqlx::query!(
        r#"
        SELECT count(*) FILTER (WHERE status = 'SENT') AS "delivered!",
               count(*) FILTER (WHERE status IN ('FAILED', 'GIVEN_UP') AND reason IS DISTINCT FROM 'CANCELLED') AS "failed!",
               count(*) FILTER (WHERE status NOT IN ('SENT', 'FAILED', 'GIVEN_UP')) AS "waiting!"
        FROM (
            SELECT p.status, p.reason FROM UNNEST($1::uuid[]) AS i(id) JOIN push_notifications p ON p.id = i.id
            UNION ALL
            SELECT n.status, n.reason FROM UNNEST($1::uuid[]) AS i(id) JOIN notifications n ON n.id = i.id) AS firsts
        "#,
        due,
    )
    .fetch_one(connection)
    .await?;
    Ok(Firsts {
        delivered: row.delivered.unsigned_abs(),
        failed: row.failed.unsigned_abs(),
        waiting: row.waiting.unsigned_abs(),
    })
}

/// Counts what the job has replayed since its start, or since it was last resumed, and what has failed since, whatever was done about that
/// later: from where the last count ended, so that a job about a million dead letters does not look at all of them for each step. The last
/// ten seconds are left to the next count: a dead letter bears the time at which its transaction began, and no statement of that takes longer.
async fn count_failures(connection: &mut PgConnection, job: Uuid) -> Result<u64, Error> {
    let counted = sqlx::query_scalar!(
        r#"
        WITH bounds AS (
            SELECT coalesce(judged_to, until) AS since,
                   greatest(coalesce(judged_to, until), now() - interval '10 seconds') AS until,
                   coalesce(judged_from, '-infinity') AS replayed_after
            FROM dead_letter_jobs WHERE id = $1),
        failed AS (
            SELECT count(*) AS count FROM bounds b
            CROSS JOIN UNNEST(ARRAY ['OPEN', 'REPLAYED', 'DISCARDED']) AS s(state)
            CROSS JOIN UNNEST(ARRAY ['push', 'reseller']) AS l(lane)
            CROSS JOIN UNNEST(ARRAY ['FAILED', 'GIVEN_UP']) AS r(reason)
            JOIN dead_letters d
              ON d.state = s.state AND d.lane = l.lane AND d.reason = r.reason AND d.created_at >= b.since AND d.created_at < b.until
            CROSS JOIN LATERAL (
                SELECT FROM dead_letters o
                WHERE o.push_id = d.push_id AND o.job_id = $1 AND o.resolved_at > b.replayed_after
                UNION ALL
                SELECT FROM dead_letters o
                WHERE o.notification_id = d.notification_id AND o.job_id = $1 AND o.resolved_at > b.replayed_after
                LIMIT 1) AS replayed
            WHERE d.job_id IS DISTINCT FROM $1 AND d.fingerprint NOT IN ('other/cancelled', 'delivery/cancelled'))
        UPDATE dead_letter_jobs j SET failed_again = j.failed_again + f.count, judged_to = b.until
        FROM bounds b, failed f WHERE j.id = $1
        RETURNING j.failed_again
        "#,
        job,
    )
    .fetch_one(connection)
    .await?;
    Ok(counted.unsigned_abs())
}

/// How many of the `replayed` failed since and wait to be tried again, so that an endpoint that still fails stops a job long before its retries
/// are used up. Of many, a sample is looked at: the identifiers of dead letters are random. Nothing is, while the index is still being made.
async fn count_tried(connection: &mut PgConnection, job: Uuid, replayed: u64) -> Result<u64, Error> {
    let row = sqlx::query!(
        r#"
        WITH sampled AS (
            SELECT push_id, notification_id, resolved_at FROM dead_letters
            WHERE job_id = $1 AND (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('dead_letters_job'))
            ORDER BY id LIMIT $3),
        letters AS (
            SELECT push_id, notification_id FROM sampled JOIN dead_letter_jobs j ON j.id = $1
            WHERE resolved_at > coalesce(j.judged_from, '-infinity') LIMIT $2)
        SELECT count(*) AS "looked_at!",
               count(*) FILTER (WHERE (p.status = 'RETRY' AND p.attempts > p.replayed_after)
                                   OR (n.status = 'RETRY' AND n.attempts > n.resent_after)) AS "tried!"
        FROM letters l
        LEFT JOIN push_notifications p ON p.id = l.push_id
        LEFT JOIN notifications n ON n.id = l.notification_id
        "#,
        job,
        TRIED_SAMPLE,
        TRIED_SAMPLE * 10,
    )
    .fetch_one(connection)
    .await?;
    let (looked_at, tried) = (row.looked_at.unsigned_abs(), row.tried.unsigned_abs());
    // After a resume few of those that are looked at may be of what was replayed since, and a few say nothing about many.
    if looked_at < TRIED_LEAST && looked_at < replayed {
        return Ok(0);
    }
    Ok(tried.saturating_mul(replayed) / looked_at.max(1))
}

/// Notes which were the first to be made due.
pub(super) async fn note_firsts(connection: &mut PgConnection, job: Uuid, due: &[Uuid]) -> Result<(), Error> {
    sqlx::query!(
        "UPDATE dead_letter_jobs SET canary_due = canary_due || $2::uuid[] WHERE id = $1",
        job,
        due,
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn pause(
    connection: &mut PgConnection,
    job: Uuid,
    (why, mut details): (JobPause, Value),
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query!(
        "UPDATE dead_letter_jobs SET status = 'PAUSED', paused_because = $2, updated_at = $3 WHERE id = $1",
        job,
        why.as_str(),
        now,
    )
    .execute(&mut *connection)
    .await?;
    details["because"] = json!(why.as_str());
    let entry = by_itself(now).entry("dead-letter-job.pause", super::job(job), details);
    entry.record(connection).await
}

async fn go_on(connection: &mut PgConnection, job: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    sqlx::query!(
        r#"
        UPDATE dead_letter_jobs SET status = 'RUNNING', paused_because = NULL, canary_passed = true, updated_at = $2
        WHERE id = $1
        "#,
        job,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

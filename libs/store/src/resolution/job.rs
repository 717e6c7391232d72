//! Jobs as people see them, and what people make of them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::dead_letter_job::{JobAction, JobCommand, JobPause, JobStatus};
use domain::subscription::RecoveryEnd;
use serde_json::{Value, json};
use sqlx::error::BoxDynError;
use sqlx::postgres::PgValueRef;
use sqlx::{Decode, PgConnection, Postgres};
use uuid::Uuid;

use super::selection::DeadLetterSelection;
use crate::read::{Count, Name, Nullable};
use crate::{Act, Error, Store, stored};

/// A job as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetterJob {
    /// Its identifier.
    pub id: Uuid,
    /// What it does to each dead letter.
    pub action: JobAction,
    /// Where it stands.
    pub status: JobStatus,
    /// Which dead letters it is about.
    pub selection: DeadLetterSelection,
    /// Why it was made.
    pub note: Option<String>,
    /// Most dead letters a second.
    pub per_second: u32,
    /// How many dead letters there were when it was made.
    pub matching: u64,
    /// How many it has looked at.
    pub examined: u64,
    /// How many it has resolved. May be more than it has looked at: see [`crate::Skipped`] and dead letters about one push.
    pub done: u64,
    /// How many it has left as they were, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Who made it.
    pub created_by: String,
    /// When.
    pub created_at: DateTime<Utc>,
    /// When it last got on, or was told to.
    pub updated_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// The subscription whose outage is over, of a job that Postrider has made by itself.
    pub recovers: Option<Uuid>,
    /// Why Postrider has cancelled it.
    pub ended_because: Option<RecoveryEnd>,
    /// Who has cancelled it, if an operator did.
    pub cancelled_by: Option<String>,
    /// Most dead letters that it looks at.
    pub letters_max: Option<u32>,
    /// Whether the newest come first.
    pub newest_first: bool,
    /// So many are sent again before the others.
    pub canary: Option<u32>,
    /// It pauses itself when more than so many percent of what it has replayed failed again.
    pub pause_above: Option<u32>,
    /// Why it has paused itself, if it did so itself.
    pub paused_because: Option<JobPause>,
}

/// What came of a command to a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobCommanded {
    /// It is as it was wanted, now or since before.
    Done(Box<DeadLetterJob>),
    /// It had ended before.
    Ended(JobStatus),
    /// There is no such job.
    Unknown,
}

/// Counters by name, as they are stored.
struct Counts(BTreeMap<String, u64>);

impl<'r> Decode<'r, Postgres> for Counts {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        Value::decode(value).map(|stored| Self(counts(&stored)))
    }
}

impl From<Counts> for BTreeMap<String, u64> {
    fn from(Counts(counts): Counts) -> Self {
        counts
    }
}

/// Reads counters by name back.
pub(super) fn counts(stored: &Value) -> BTreeMap<String, u64> {
    let fields = stored.as_object().into_iter().flatten();
    fields
        .filter_map(|(reason, count)| Some((reason.clone(), count.as_u64()?)))
        .collect()
}

/// Reads jobs; `$selection` is their filter as it is to be read, and `$which` is which of them.
macro_rules! jobs {
    ($selection:literal, $which:literal $(, $value:expr)*) => {
        sqlx::query_as!(
            DeadLetterJob,
            "SELECT id, action AS \"action: Name<_>\", status AS \"status: Name<_>\", " + $selection + " AS \"selection!: DeadLetterSelection\", note,
                    per_second AS \"per_second: Count\", matching AS \"matching: Count\", examined AS \"examined: Count\",
                    done AS \"done: Count\", skipped AS \"skipped: Counts\", created_by, created_at, updated_at, finished_at, recovers,
                    ended_because AS \"ended_because!: Nullable<Name<_>>\",
                    CASE WHEN status = 'CANCELLED' THEN (
                        SELECT a.actor FROM audit_log a
                        WHERE a.subject = 'dead-letter-job/' || j.id::text AND a.action = 'dead-letter-job.cancel'
                        ORDER BY a.id DESC LIMIT 1) END AS \"cancelled_by?\",
                    letters_max AS \"letters_max!: Nullable<Count>\", newest_first,
                    canary AS \"canary!: Nullable<Count>\", pause_above AS \"pause_above!: Nullable<Count>\",
                    paused_because AS \"paused_because!: Nullable<Name<_>>\"
             FROM dead_letter_jobs j WHERE " + $which
            $(, $value)*
        )
    };
}

/// One job, as the caller's transaction sees it.
pub(super) async fn find(connection: &mut PgConnection, id: Uuid) -> Result<Option<DeadLetterJob>, Error> {
    Ok(jobs!("filter", "id = $1", id).fetch_optional(connection).await?)
}

impl Store {
    /// One job.
    pub async fn find_dead_letter_job(&self, id: Uuid) -> Result<Option<DeadLetterJob>, Error> {
        let mut connection = self.pool.acquire().await?;
        find(&mut connection, id).await
    }

    /// Jobs of a status, or all, the newest first. Those about single dead letters come without the identifiers of those:
    /// they would be by far the most of the list.
    pub async fn list_dead_letter_jobs(
        &self,
        status: Option<JobStatus>,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<DeadLetterJob>, Error> {
        Ok(jobs!(
            "CASE WHEN filter ? 'ids' THEN '{\"ids\": []}' ELSE filter END",
            "($1::text IS NULL OR status = $1) AND ($2::uuid IS NULL OR id < $2) ORDER BY id DESC LIMIT $3",
            status.map(JobStatus::as_str),
            before,
            i64::from(limit)
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// The jobs that can get on.
    pub async fn running_dead_letter_jobs(&self) -> Result<Vec<Uuid>, Error> {
        Ok(sqlx::query_scalar!(
            // What a person waits for comes first.
            r#"
            SELECT id FROM dead_letter_jobs
            WHERE finished_at IS NULL AND (status = 'RUNNING' OR status = 'PAUSED' AND paused_because = 'CANARY')
            ORDER BY recovers IS NOT NULL, id
            "#
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Pauses, resumes or cancels a job. A step under way is waited for; what is done stays done.
    pub async fn command_dead_letter_job(
        &self,
        id: Uuid,
        command: JobCommand,
        act: &Act<'_>,
    ) -> Result<JobCommanded, Error> {
        let mut transaction = self.pool.begin().await?;
        let row = sqlx::query!(
            "SELECT status, paused_because FROM dead_letter_jobs WHERE id = $1 FOR UPDATE",
            id
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else {
            return Ok(JobCommanded::Unknown);
        };
        let status: JobStatus = stored("job status", &row.status)?;
        let because: Option<JobPause> = match row.paused_because {
            Some(because) => Some(stored("reason of a job to pause", &because)?),
            None => None,
        };
        let waits = because == Some(JobPause::Canary);
        match status.command(command) {
            Err(ended) => return Ok(JobCommanded::Ended(ended.0)),
            // One that waits for its first ones would go on by itself: at an operator's word it does not.
            Ok(next) if next == status && !(waits && command == JobCommand::Pause) => {}
            Ok(next) => change(&mut transaction, id, (next, because), (command, act)).await?,
        }
        let job = find(&mut transaction, id).await?;
        transaction.commit().await?;
        Ok(job.map_or(JobCommanded::Unknown, |job| JobCommanded::Done(Box::new(job))))
    }
}

impl Store {
    /// Changes the rate of a job that has not ended, whether it runs or is paused.
    pub async fn pace_dead_letter_job(
        &self,
        id: Uuid,
        per_second: u32,
        act: &Act<'_>,
    ) -> Result<JobCommanded, Error> {
        let mut transaction = self.pool.begin().await?;
        let row = sqlx::query!(
            "SELECT status, per_second FROM dead_letter_jobs WHERE id = $1 FOR UPDATE",
            id
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else {
            return Ok(JobCommanded::Unknown);
        };
        let status: JobStatus = stored("job status", &row.status)?;
        if status.is_terminal() {
            return Ok(JobCommanded::Ended(status));
        }
        if row.per_second.unsigned_abs() != per_second {
            sqlx::query!(
                "UPDATE dead_letter_jobs SET per_second = $2, updated_at = $3 WHERE id = $1",
                id,
                i32::try_from(per_second).unwrap_or(i32::MAX),
                act.at,
            )
            .execute(&mut *transaction)
            .await?;
            let details = json!({ "perSecond": { "from": row.per_second, "to": per_second } });
            let entry = act.entry("dead-letter-job.pace", super::job(id), details);
            entry.record(&mut transaction).await?;
        }
        let job = find(&mut transaction, id).await?;
        transaction.commit().await?;
        Ok(job.map_or(JobCommanded::Unknown, |job| JobCommanded::Done(Box::new(job))))
    }
}

async fn change(
    connection: &mut PgConnection,
    id: Uuid,
    (next, because): (JobStatus, Option<JobPause>),
    (command, act): (JobCommand, &Act<'_>),
) -> Result<(), Error> {
    // A job that goes on at an operator's word has its first ones behind it if it waited for them or they failed, and what it replayed until
    // then stops it no more. Steps move updated_at, by the clock that they date what they replay with.
    sqlx::query!(
        r#"
        UPDATE dead_letter_jobs
        SET status = $2, updated_at = $3, finished_at = CASE WHEN $4 THEN $3::timestamptz END, paused_because = NULL,
            canary_passed = canary_passed OR $5 AND coalesce(paused_because IN ('CANARY', 'CANARY_FAILED'), false),
            failed_again = CASE WHEN $5 THEN 0 ELSE failed_again END,
            judged_to = CASE WHEN $5 THEN now() ELSE judged_to END, judged_done = CASE WHEN $5 THEN done ELSE judged_done END,
            judged_from = CASE WHEN $5 THEN updated_at ELSE judged_from END
        WHERE id = $1
        "#,
        id,
        next.as_str(),
        act.at,
        next.is_terminal(),
        command == JobCommand::Resume,
    )
    .execute(&mut *connection)
    .await?;
    let action = match command {
        JobCommand::Pause => "dead-letter-job.pause",
        JobCommand::Resume => "dead-letter-job.resume",
        JobCommand::Cancel => "dead-letter-job.cancel",
    };
    let details = match (command, because) {
        (JobCommand::Resume, Some(JobPause::CanaryFailed)) => {
            json!({ "waived": JobPause::CanaryFailed.as_str() })
        }
        _ => json!({}),
    };
    let entry = act.entry(action, super::job(id), details);
    entry.record(connection).await
}

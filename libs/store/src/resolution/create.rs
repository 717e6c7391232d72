//! Making jobs: bulk work on dead letters that others then take on step by step.

use chrono::{DateTime, Utc};
use domain::dead_letter_job::JobAction;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::careful::JobCare;
use super::job::{self, DeadLetterJob};
use super::selection::{self, DeadLetterSelection};
use crate::webhook::first_id_at;
use crate::{Act, Error, Store, audit};

/// A job to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDeadLetterJob {
    /// Its identifier, if the one who asks for it has chosen it: asking twice then makes one job.
    pub id: Option<Uuid>,
    /// What is done to each dead letter.
    pub action: JobAction,
    /// To which ones.
    pub selection: DeadLetterSelection,
    /// Most dead letters a second.
    pub per_second: u32,
    /// How careful it is.
    pub care: JobCare,
}

/// What came of asking for a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobCreated {
    /// It runs, or the very same was made before under the identifier.
    Done(Box<DeadLetterJob>),
    /// Another job has the identifier.
    Taken,
    /// There is nothing to do, and no job.
    NothingMatches,
    /// There is no such dead letter, and no job.
    Unknown(Uuid),
}

impl Store {
    /// How many dead letters this person's jobs of that action were about since then, when they were made.
    pub async fn letters_of_jobs_by(
        &self,
        by: &str,
        action: JobAction,
        since: DateTime<Utc>,
    ) -> Result<u64, Error> {
        let letters = sqlx::query_scalar!(
            r#"
            SELECT coalesce(sum(matching), 0)::bigint AS "letters!" FROM dead_letter_jobs
            WHERE id >= $1 AND created_at > $2 AND created_by = $3 AND action = $4 AND recovers IS NULL
            "#,
            first_id_at(since),
            since,
            by,
            action.as_str(),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(letters.unsigned_abs())
    }

    /// Stores a job about the dead letters that are there now.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails, or a discard has no note; then nothing is stored.
    pub async fn create_dead_letter_job(
        &self,
        new: &NewDeadLetterJob,
        act: &Act<'_>,
    ) -> Result<JobCreated, Error> {
        let mut transaction = self.pool.begin().await?;
        if let Some(id) = new.id
            && let Some(before) = made_before(&mut transaction, id, new, act).await?
        {
            return Ok(before);
        }
        if let Some(unknown) = unknown(&mut transaction, &new.selection).await? {
            return Ok(JobCreated::Unknown(unknown));
        }
        let most = new.care.letters_max.map_or(u64::MAX, u64::from);
        let matching = selection::count_up_to(&mut transaction, &new.selection, most).await?;
        if matching == 0 {
            return Ok(JobCreated::NothingMatches);
        }
        let id = new.id.unwrap_or_else(|| audit::id_at(act.at));
        if !insert(&mut transaction, id, new, matching, act).await? {
            // Made by another request since it was looked for, and committed.
            let before = made_before(&mut transaction, id, new, act).await?;
            return Ok(before.unwrap_or(JobCreated::Taken));
        }
        let details = json!({
            "action": new.action.as_str(), "matching": matching, "perSecond": new.per_second,
            "limit": new.care.letters_max, "order": if new.care.newest_first { "newest" } else { "oldest" },
            "canary": new.care.canary, "pauseAbove": new.care.pause_above,
            "filter": match &new.selection {
                DeadLetterSelection::DeadLetters(ids) => json!({ "letters": ids.len() }),
                DeadLetterSelection::Matching(filter) => filter.to_json(),
            },
        });
        let entry = act.entry("dead-letter-job.create", super::job(id), details);
        entry.record(&mut transaction).await?;
        let job = job::find(&mut transaction, id).await?;
        transaction.commit().await?;
        Ok(job.map_or(JobCreated::NothingMatches, |job| JobCreated::Done(Box::new(job))))
    }
}

/// What was made under this identifier before, if anything was: the same job, or another one.
async fn made_before(
    connection: &mut PgConnection,
    id: Uuid,
    new: &NewDeadLetterJob,
    act: &Act<'_>,
) -> Result<Option<JobCreated>, Error> {
    let Some(job) = job::find(connection, id).await? else {
        return Ok(None);
    };
    let care = JobCare {
        letters_max: job.letters_max,
        newest_first: job.newest_first,
        canary: job.canary,
        pause_above: job.pause_above,
    };
    // As it is stored: a time of a filter has no more than its microseconds there.
    let is_same = job.action == new.action
        && job.selection.to_json() == new.selection.to_json()
        && job.per_second == new.per_second
        && care == new.care
        && job.note.as_deref() == act.note
        && job.created_by == act.by;
    Ok(Some(if is_same {
        JobCreated::Done(Box::new(job))
    } else {
        JobCreated::Taken
    }))
}

/// One of the chosen dead letters that does not exist.
async fn unknown(
    connection: &mut PgConnection,
    selection: &DeadLetterSelection,
) -> Result<Option<Uuid>, Error> {
    let DeadLetterSelection::DeadLetters(ids) = selection else {
        return Ok(None);
    };
    Ok(sqlx::query_scalar!(
        r#"
        SELECT i.id AS "id!" FROM UNNEST($1::uuid[]) AS i(id)
        WHERE NOT EXISTS (SELECT FROM dead_letters d WHERE d.id = i.id)
        LIMIT 1
        "#,
        ids,
    )
    .fetch_optional(connection)
    .await?)
}

/// Stores it; returns false when there is one with this identifier. `until` is read from the clock that dead letters are dated by.
async fn insert(
    connection: &mut PgConnection,
    id: Uuid,
    new: &NewDeadLetterJob,
    matching: u64,
    act: &Act<'_>,
) -> Result<bool, Error> {
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let inserted = sqlx::query!(
        r#"
        INSERT INTO dead_letter_jobs (id, action, filter, note, per_second, until, matching, created_by, created_at,
                                      paced_to, updated_at, letters_max, newest_first, canary, pause_above, steps)
        VALUES ($1, $2, $3, $4, $5, now(), $6, $7, $8, $8, $8, $9, $10, $11, $12, $13)
        ON CONFLICT (id) DO NOTHING
        "#,
        id,
        new.action.as_str(),
        new.selection.to_json(),
        act.note,
        number(new.per_second),
        i64::try_from(matching).unwrap_or(i64::MAX),
        act.by,
        act.at,
        new.care.letters_max.map(number),
        new.care.newest_first,
        new.care.canary.map(number),
        new.care.pause_above.map(number),
        (new.care != JobCare::default()).then_some(0),
    )
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() > 0)
}

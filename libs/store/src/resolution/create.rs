//! Making jobs: bulk work on dead letters that others then take on step by step.

use domain::dead_letter_job::JobAction;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::careful::JobCare;
use super::job::{self, DeadLetterJob};
use super::selection::{self, DeadLetterSelection};
use crate::{Act, Error, Store, audit};

/// A job to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDeadLetterJob {
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
    /// It runs.
    Done(Box<DeadLetterJob>),
    /// There is nothing to do, and no job.
    NothingMatches,
    /// There is no such dead letter, and no job.
    Unknown(Uuid),
}

impl Store {
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
        if let Some(unknown) = unknown(&mut transaction, &new.selection).await? {
            return Ok(JobCreated::Unknown(unknown));
        }
        let preview = selection::preview(&mut transaction, &new.selection).await?;
        if preview.matching == 0 {
            return Ok(JobCreated::NothingMatches);
        }
        let id = audit::id_at(act.at);
        let most = new.care.letters_max.map_or(u64::MAX, u64::from);
        insert(&mut transaction, id, new, preview.matching.min(most), act).await?;
        let details = json!({
            "action": new.action.as_str(), "matching": preview.matching, "perSecond": new.per_second,
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

/// `until` is read from the clock that dead letters are dated by.
async fn insert(
    connection: &mut PgConnection,
    id: Uuid,
    new: &NewDeadLetterJob,
    matching: u64,
    act: &Act<'_>,
) -> Result<(), Error> {
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    sqlx::query!(
        r#"
        INSERT INTO dead_letter_jobs (id, action, filter, note, per_second, until, matching, created_by, created_at,
                                      paced_to, updated_at, letters_max, newest_first, canary, pause_above, steps)
        VALUES ($1, $2, $3, $4, $5, now(), $6, $7, $8, $8, $8, $9, $10, $11, $12, $13)
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
    Ok(())
}

//! What follows when the database was lost and restored to an earlier moment. Between that moment and the loss things were sent, and the
//! database does not know of it. So whatever had not ended is ended as possibly sent, with an open dead letter, and nothing that began before
//! sends it by itself; an operator releases it by replaying those dead letters.
//!
//! Both lanes are paused before the first change and until the last, so that a service which is started too early, or after a crash in
//! the middle, sends nothing. Each step can be taken again. It deliberately takes no part in restoring, and it guesses nothing about what was
//! accepted in between: that is gone, and only told.

use std::time::Instant;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::later;
use crate::read::{Count, Name};
use crate::{Act, DeadLetterLane, Error, Lane, Pausable, Store};

/// Rows ended in one statement.
const BATCH: usize = 1_000;
/// What is added to every lease's epoch: more than there are changes of holder in the life of an installation.
const EPOCH_JUMP: i64 = 1_000_000_000;
/// By how much the clocks of services, and what people say of the moment of a loss, may be off.
const MARGIN: TimeDelta = TimeDelta::minutes(1);
/// The note of the pauses, by which those of an interrupted run are known.
const PAUSED: &str = "the database was restored; until `postrider recover` is through";

/// From when until when the database knows nothing of what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// The moment that the database was restored to.
    pub restored_to: DateTime<Utc>,
    /// When it was lost, or a little later: nothing was sent after this until it was restored.
    pub lost_at: DateTime<Utc>,
}

/// What may have been sent, of one lane and one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PossiblySent {
    /// The lane.
    pub lane: DeadLetterLane,
    /// How it stood: `sending`, `queued`, `pending`, `retry` or `scheduled`.
    pub class: String,
    /// How many pushes or notifications.
    pub count: u64,
}

/// What a recovery has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterRestore {
    /// The gap.
    #[serde(flatten)]
    pub gap: Gap,
    /// What is held as possibly sent, now: what was released before is not among it.
    pub possibly_sent: Vec<PossiblySent>,
    /// Jobs on dead letters that were paused: between the two moments they may have gone on.
    pub jobs_paused: Vec<Uuid>,
    /// Replays of resellers that were cancelled, for the same reason.
    pub replays_cancelled: Vec<Uuid>,
    /// Subscriptions of which nothing that was given up before is sent again by itself, since it may have been.
    pub outages_forgotten: u64,
    /// When this was done already, if it was; then nothing was done now.
    pub done_before: Option<DateTime<Utc>>,
}

/// Why there was no recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotRecovered {
    /// These are connected to the database, by the names that they gave it.
    Connected(Vec<String>),
    /// The database knows of something that happened after the loss, at this time.
    Newer(DateTime<Utc>),
}

/// What was stopped before anything was ended.
#[derive(Default)]
struct Stopped {
    jobs: Vec<Uuid>,
    replays: Vec<Uuid>,
    outages: u64,
}

impl Store {
    /// About the moment that the database was restored to: what an interrupted recovery noted, or when the database last saw a service at
    /// work.
    pub async fn restored_to(&self) -> Result<Option<DateTime<Utc>>, Error> {
        let noted = sqlx::query_scalar!(
            r#"
            SELECT min((s.details ->> 'restoredTo')::timestamptz) FROM audit_log s
            WHERE s.subject = 'database' AND s.action = 'recover.start'
              AND NOT EXISTS (SELECT FROM audit_log e WHERE e.subject = 'database' AND e.action = 'recover.end' AND e.id > s.id)
            "#,
        )
        .fetch_one(&self.pool)
        .await?;
        match noted {
            Some(noted) => Ok(Some(noted)),
            None => self.last_sign_of_service().await,
        }
    }

    async fn last_sign_of_service(&self) -> Result<Option<DateTime<Utc>>, Error> {
        Ok(sqlx::query_scalar!(
            "SELECT greatest((SELECT max(renewed_at) FROM leases), (SELECT max(beat_at) FROM processes))"
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// Counts what a recovery would end as possibly sent before the loss.
    pub async fn count_possibly_sent(&self, lost_at: DateTime<Utc>) -> Result<Vec<PossiblySent>, Error> {
        let mut transaction = self.pool.begin().await?;
        // Reads an index entry for each, however many there are.
        sqlx::query!("SET LOCAL statement_timeout = 0")
            .execute(&mut *transaction)
            .await?;
        let mut counted = sqlx::query_file_as!(
            PossiblySent,
            "queries/after_restore/possibly_sent.sql",
            lost_at + MARGIN,
        )
        .fetch_all(&mut *transaction)
        .await?;
        counted
            .sort_by(|one, other| (one.lane.as_str(), &one.class).cmp(&(other.lane.as_str(), &other.class)));
        Ok(counted)
    }

    /// Ends everything that may have been sent in the gap, and stops what would send by itself what ended before; `told` hears how many were
    /// ended so far. A recovery from the same loss that was through before is left at that.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails. Both lanes stay paused then, and the same call goes on.
    pub async fn recover_after_restore(
        &self,
        gap: Gap,
        act: Act<'_>,
        mut told: impl FnMut(u64),
    ) -> Result<Result<AfterRestore, NotRecovered>, Error> {
        // As the database keeps it.
        let gap = Gap {
            restored_to: gap.restored_to.trunc_subsecs(6),
            lost_at: gap.lost_at.trunc_subsecs(6),
        };
        let begun = Instant::now();
        if let Some(before) = self.recovered_before(gap.lost_at).await? {
            self.resume_lanes(act).await?;
            return Ok(Ok(self
                .after_restore(gap, Stopped::default(), Some(before))
                .await?));
        }
        if let Some(refused) = self.is_in_use(gap.lost_at).await? {
            return Ok(Err(refused));
        }
        let pausing = Act {
            note: Some(PAUSED),
            ..act
        };
        for lane in Lane::ALL {
            self.pause(&Pausable::Lane(lane), pausing).await?;
        }
        let stopped = self.stop_what_sends_again(gap, act).await?;
        let mut ended = 0;
        loop {
            let (pushes, notifications) = self.list_possibly_sent(gap.lost_at).await?;
            for batch in pushes.chunks(BATCH) {
                ended += self.quarantine_pushes(batch, act.at).await?;
                told(ended);
            }
            for batch in notifications.chunks(BATCH) {
                ended += self.quarantine_notifications(batch, act.at).await?;
                told(ended);
            }
            if pushes.is_empty() && notifications.is_empty() {
                break;
            }
        }
        // One that has come meanwhile may have made something that is not held.
        if let Some(refused) = self.is_in_use(gap.lost_at).await? {
            return Ok(Err(refused));
        }
        let done = self.after_restore(gap, stopped, None).await?;
        let details = json!({ "restoredTo": gap.restored_to, "lostAt": gap.lost_at, "possiblySent": done.possibly_sent });
        self.note(&later(act, begun), "recover.end", "database", details)
            .await?;
        self.resume_lanes(later(act, begun)).await?;
        Ok(Ok(done))
    }

    /// When a recovery from this loss was through, if one was.
    async fn recovered_before(&self, lost_at: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            SELECT at FROM audit_log
            WHERE subject = 'database' AND action = 'recover.end' AND (details ->> 'lostAt')::timestamptz = $1
            ORDER BY id DESC LIMIT 1
            "#,
            lost_at,
        )
        .fetch_optional(&self.pool)
        .await?)
    }

    /// Why the database is not one that was just restored, with everything that works on it stopped.
    async fn is_in_use(&self, lost_at: DateTime<Utc>) -> Result<Option<NotRecovered>, Error> {
        let connected = sqlx::query_scalar!(
            r#"
            SELECT DISTINCT application_name AS "name!" FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid() AND starts_with(application_name, 'postrider-')
            ORDER BY 1
            "#,
        )
        .fetch_all(&self.pool)
        .await?;
        if !connected.is_empty() {
            return Ok(Some(NotRecovered::Connected(connected)));
        }
        let newer = self.last_sign_of_service().await?;
        Ok(newer.filter(|at| *at > lost_at).map(NotRecovered::Newer))
    }

    /// No lease that was given out before is one any more, and nothing that was to be sent again goes on by itself.
    async fn stop_what_sends_again(&self, gap: Gap, act: Act<'_>) -> Result<Stopped, Error> {
        let mut transaction = self.pool.begin().await?;
        sqlx::query!(
            "UPDATE leases SET holder = NULL, epoch = epoch + $1, renewals = renewals + 1",
            EPOCH_JUMP,
        )
        .execute(&mut *transaction)
        .await?;
        let jobs = sqlx::query_scalar!(
            r#"
            UPDATE dead_letter_jobs SET status = 'PAUSED', paused_because = NULL, updated_at = $1
            WHERE action = 'REPLAY' AND finished_at IS NULL
              AND (status = 'RUNNING' OR status = 'PAUSED' AND paused_because = 'CANARY')
            RETURNING id
            "#,
            act.at,
        )
        .fetch_all(&mut *transaction)
        .await?;
        let replays = sqlx::query_scalar!(
            r#"
            UPDATE replays SET status = 'CANCELLED', finished_at = $1, updated_at = $1, cancelled_by = 'postrider'
            WHERE status = 'RUNNING' RETURNING id
            "#,
            act.at,
        )
        .fetch_all(&mut *transaction)
        .await?;
        // An outage that goes on gives up more: of that a recovery is made as ever.
        let outages = sqlx::query!(
            r#"
            UPDATE subscriptions SET outage_since = CASE WHEN failing_since IS NOT NULL THEN now() END
            WHERE outage_since IS NOT NULL
            "#,
        )
        .execute(&mut *transaction)
        .await?
        .rows_affected();
        let details = json!({
            "restoredTo": gap.restored_to,
            "lostAt": gap.lost_at,
            "jobsPaused": jobs,
            "replaysCancelled": replays,
            "outagesForgotten": outages,
        });
        let entry = act.entry("recover.start", "database".to_owned(), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(Stopped {
            jobs,
            replays,
            outages,
        })
    }

    /// Everything that may have been sent, by lane. All at once: a walk in parts would read over what it has ended again and again, and
    /// the identifiers of ten million are 160 MB.
    async fn list_possibly_sent(&self, lost_at: DateTime<Utc>) -> Result<(Vec<Uuid>, Vec<Uuid>), Error> {
        let mut transaction = self.pool.begin().await?;
        sqlx::query!("SET LOCAL statement_timeout = 0")
            .execute(&mut *transaction)
            .await?;
        let pushes = sqlx::query_scalar!(
            r#"
            -- Reads all that waits, while no service runs.
            SELECT id AS "id!" FROM push_notifications WHERE status = 'PENDING'
            UNION ALL SELECT id FROM push_notifications WHERE status = 'IN_MEMORY'
            UNION ALL SELECT id FROM push_notifications WHERE status = 'RETRY'
            UNION ALL SELECT id FROM push_notifications WHERE status = 'SCHEDULED' AND next_attempt_at < $1
            "#,
            lost_at + MARGIN,
        )
        .fetch_all(&mut *transaction)
        .await?;
        let notifications = sqlx::query_scalar!(
            r#"
            -- Reads all that waits, while no service runs.
            SELECT id AS "id!" FROM notifications WHERE status = 'PENDING'
            UNION ALL SELECT id FROM notifications WHERE status = 'IN_MEMORY'
            UNION ALL SELECT id FROM notifications WHERE status = 'RETRY'
            UNION ALL SELECT id FROM notifications WHERE status = 'SCHEDULED'
            "#,
        )
        .fetch_all(&mut *transaction)
        .await?;
        Ok((pushes, notifications))
    }

    async fn quarantine_pushes(&self, ids: &[Uuid], at: DateTime<Utc>) -> Result<u64, Error> {
        let ended = sqlx::query_file_scalar!("queries/after_restore/quarantine_pushes.sql", ids, at)
            .fetch_one(&self.pool)
            .await?;
        Ok(ended.unsigned_abs())
    }

    async fn quarantine_notifications(&self, ids: &[Uuid], at: DateTime<Utc>) -> Result<u64, Error> {
        let ended = sqlx::query_file_scalar!("queries/after_restore/quarantine_notifications.sql", ids, at)
            .fetch_one(&self.pool)
            .await?;
        Ok(ended.unsigned_abs())
    }

    async fn after_restore(
        &self,
        gap: Gap,
        stopped: Stopped,
        done_before: Option<DateTime<Utc>>,
    ) -> Result<AfterRestore, Error> {
        let possibly_sent = sqlx::query_as!(
            PossiblySent,
            r#"
            SELECT lane AS "lane!: Name<_>", split_part(fingerprint, '/', 3) AS "class!", sum(letters)::bigint AS "count!: Count"
            FROM dead_letter_totals
            WHERE state = 'OPEN' AND starts_with(fingerprint, 'recovery/possibly-sent/')
            GROUP BY lane, fingerprint HAVING sum(letters) > 0 ORDER BY 1, 2
            "#,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(AfterRestore {
            gap,
            possibly_sent,
            jobs_paused: stopped.jobs,
            replays_cancelled: stopped.replays,
            outages_forgotten: stopped.outages,
            done_before,
        })
    }

    /// Ends the pauses that a recovery has made, and no others.
    async fn resume_lanes(&self, act: Act<'_>) -> Result<(), Error> {
        let pauses = self.list_pauses().await?;
        for lane in Lane::ALL {
            let lane = Pausable::Lane(lane);
            if pauses
                .iter()
                .any(|pause| pause.scope == lane.scope() && pause.key == lane.key() && pause.note == PAUSED)
            {
                self.resume(&lane, act).await?;
            }
        }
        Ok(())
    }
}

//! What follows when the database was lost and restored to an earlier moment. Between that moment and the loss things were sent, and the
//! database does not know of it. So whatever had not ended is ended as possibly sent, with an open dead letter, and nothing that began before
//! sends it by itself; an operator releases it by replaying those dead letters.
//!
//! Both lanes are paused before the first change and until the last, so that a service which is started too early, or after a crash in
//! the middle, sends nothing. Each step can be taken again. It deliberately takes no part in restoring, and it guesses nothing about what was
//! accepted in between: that is gone, and only told.

mod moments;
mod stop;

use std::time::Instant;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use self::moments::Noted;
pub use self::stop::Stopped;
use super::later;
use crate::read::{Count, Name};
use crate::{Act, DeadLetterLane, EndVisits, Error, Lane, Pausable, Store};

/// Rows ended in one statement.
const BATCH: usize = 1_000;
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
    /// What was stopped, by interrupted runs of the same recovery too.
    #[serde(flatten)]
    pub stopped: Stopped,
    /// Lanes that an operator had paused: they stay so until they are resumed, even if the pause was to end by itself.
    pub lanes_paused: Vec<String>,
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
    /// The gap would end before it begins: the database was restored to this moment, which is after the loss.
    RestoredLater(DateTime<Utc>),
}

/// What the audit log has of a recovery: when it begins, without what is held; and when it is through.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details<'a> {
    #[serde(flatten)]
    gap: Gap,
    #[serde(flatten)]
    stopped: &'a Stopped,
    #[serde(skip_serializing_if = "Option::is_none")]
    possibly_sent: Option<&'a [PossiblySent]>,
}

/// What is to be ended, by lane.
struct Listed {
    pushes: Vec<Uuid>,
    notifications: Vec<Uuid>,
}

impl Store {
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
            return Ok(Ok(self.done_before(gap.lost_at, before).await?));
        }
        if let Some(refused) = self.is_in_use(gap.lost_at).await? {
            return Ok(Err(refused));
        }
        if gap.restored_to > gap.lost_at {
            return Ok(Err(NotRecovered::RestoredLater(gap.restored_to)));
        }
        self.pause_lanes(act).await?;
        self.end_portal_visits(None, EndVisits::All, act).await?;
        self.stop_what_sends_again(gap, act).await?;
        self.quarantine(gap.lost_at, act.at, &mut told).await?;
        // One that has come meanwhile may have made something that is not held. Another run finds that.
        if let Some(refused) = self.is_in_use(gap.lost_at).await? {
            return Ok(Err(refused));
        }
        let done = self.after_restore(gap, self.all_stopped().await?, None).await?;
        let details = json!(Details {
            gap,
            stopped: &done.stopped,
            possibly_sent: Some(&done.possibly_sent),
        });
        self.note(&later(act, begun), "recover.end", "database", details)
            .await?;
        self.resume_lanes(later(act, begun)).await?;
        Ok(Ok(done))
    }

    /// What a recovery that was through has to tell once more.
    async fn done_before(&self, lost_at: DateTime<Utc>, before: Noted) -> Result<AfterRestore, Error> {
        let gap = Gap {
            restored_to: before.restored_to,
            lost_at,
        };
        self.after_restore(gap, before.stopped.0, Some(before.at)).await
    }

    /// Pauses both lanes until the recovery is through. A pause that an operator had made stays instead, and its end by itself is taken away: it
    /// could come in the middle.
    async fn pause_lanes(&self, act: Act<'_>) -> Result<(), Error> {
        self.keep_lanes_paused(act).await?;
        let pausing = Act {
            note: Some(PAUSED),
            ..act
        };
        for lane in Lane::ALL {
            self.pause(&Pausable::Lane(lane), pausing).await?;
        }
        Ok(())
    }

    /// Ends all that may have been sent; `told` hears how many were ended so far. What was in memory comes first: a service that is started too
    /// early after a run that was interrupted rescues it, and takes it for something that waits.
    async fn quarantine(
        &self,
        lost_at: DateTime<Utc>,
        at: DateTime<Utc>,
        told: &mut impl FnMut(u64),
    ) -> Result<(), Error> {
        let mut ended = 0;
        for listed in self.list_possibly_sent(lost_at).await? {
            for batch in listed.pushes.chunks(BATCH) {
                ended += self.quarantine_pushes(batch, at).await?;
                told(ended);
            }
            for batch in listed.notifications.chunks(BATCH) {
                ended += self.quarantine_notifications(batch, at).await?;
                told(ended);
            }
        }
        Ok(())
    }

    /// What was in the queue or being sent, then everything else that may have been sent. All at once: a walk in parts would read over what
    /// it has ended again and again, and the identifiers of ten million are 160 MB.
    async fn list_possibly_sent(&self, lost_at: DateTime<Utc>) -> Result<[Listed; 2], Error> {
        let mut transaction = self.pool.begin().await?;
        sqlx::query!("SET LOCAL statement_timeout = 0")
            .execute(&mut *transaction)
            .await?;
        let pushes = sqlx::query_scalar!(
            r#"
            -- Reads all that waits, while no service runs.
            SELECT id FROM push_notifications WHERE status = 'IN_MEMORY'
            "#,
        )
        .fetch_all(&mut *transaction)
        .await?;
        let notifications = sqlx::query_scalar!(
            r#"
            -- Reads all that waits, while no service runs.
            SELECT id FROM notifications WHERE status = 'IN_MEMORY'
            "#,
        )
        .fetch_all(&mut *transaction)
        .await?;
        let in_memory = Listed {
            pushes,
            notifications,
        };
        let pushes = sqlx::query_scalar!(
            r#"
            -- Reads all that waits, while no service runs.
            SELECT id AS "id!" FROM push_notifications WHERE status = 'PENDING'
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
            UNION ALL SELECT id FROM notifications WHERE status = 'RETRY'
            UNION ALL SELECT id FROM notifications WHERE status = 'SCHEDULED'
            "#,
        )
        .fetch_all(&mut *transaction)
        .await?;
        let waiting = Listed {
            pushes,
            notifications,
        };
        Ok([in_memory, waiting])
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
        let pauses = self.list_pauses().await?.into_iter();
        let lanes_paused = pauses
            .filter(|pause| pause.scope == "lane" && pause.note != PAUSED)
            .map(|pause| pause.key);
        Ok(AfterRestore {
            gap,
            possibly_sent,
            stopped,
            lanes_paused: lanes_paused.collect(),
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

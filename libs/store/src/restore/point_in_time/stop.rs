//! Stopping what would send by itself what was sent before, and telling later what was stopped.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Details, Gap};
use crate::{Act, Error, Store};

/// What is added to every lease's epoch: more than there are changes of holder in the life of an installation.
const EPOCH_JUMP: i64 = 1_000_000_000;

/// What was stopped before anything was ended; as the audit log has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Stopped {
    /// Jobs on dead letters that were paused: between the two moments they may have gone on.
    pub jobs_paused: Vec<Uuid>,
    /// Replays of resellers that were cancelled, for the same reason.
    pub replays_cancelled: Vec<Uuid>,
    /// Subscriptions of which nothing that was given up before is sent again by itself, since it may have been.
    pub outages_forgotten: u64,
}

impl Stopped {
    fn and(mut self, other: Self) -> Self {
        self.jobs_paused.extend(other.jobs_paused);
        self.replays_cancelled.extend(other.replays_cancelled);
        self.outages_forgotten += other.outages_forgotten;
        self
    }
}

impl Store {
    /// Takes the end by itself away from every pause of a lane that has one.
    pub(super) async fn keep_lanes_paused(&self, act: Act<'_>) -> Result<(), Error> {
        let mut transaction = self.pool.begin().await?;
        let kept = sqlx::query_scalar!(
            "UPDATE pauses SET until = NULL WHERE scope = 'lane' AND until IS NOT NULL RETURNING key"
        )
        .fetch_all(&mut *transaction)
        .await?;
        for lane in kept {
            let details = json!({ "until": null });
            record(
                &mut transaction,
                act,
                "lane.pause",
                format!("lane/{lane}"),
                details,
            )
            .await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// No lease that was given out before is one any more, and nothing that was to be sent again goes on by itself.
    pub(super) async fn stop_what_sends_again(&self, gap: Gap, act: Act<'_>) -> Result<(), Error> {
        let mut transaction = self.pool.begin().await?;
        sqlx::query!(
            "UPDATE leases SET holder = NULL, epoch = epoch + $1, renewals = renewals + 1",
            EPOCH_JUMP,
        )
        .execute(&mut *transaction)
        .await?;
        let stopped = Stopped {
            jobs_paused: pause_jobs(&mut transaction, act).await?,
            replays_cancelled: cancel_replays(&mut transaction, act).await?,
            outages_forgotten: forget_outages(&mut transaction, act).await?,
        };
        let details = json!(Details {
            gap,
            stopped: &stopped,
            possibly_sent: None,
        });
        record(
            &mut transaction,
            act,
            "recover.start",
            "database".to_owned(),
            details,
        )
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// What all runs of the recovery under way have stopped: one that goes on finds nothing left of what an interrupted one had.
    pub(super) async fn all_stopped(&self) -> Result<Stopped, Error> {
        let runs = self.recovery_under_way().await?.into_iter();
        Ok(runs.fold(Stopped::default(), |all, run| all.and(run.stopped.0)))
    }
}

async fn pause_jobs(connection: &mut PgConnection, act: Act<'_>) -> Result<Vec<Uuid>, Error> {
    let jobs = sqlx::query_scalar!(
        r#"
        UPDATE dead_letter_jobs SET status = 'PAUSED', paused_because = NULL, updated_at = $1
        WHERE action = 'REPLAY' AND finished_at IS NULL AND recovers IS NULL
          AND (status = 'RUNNING' OR status = 'PAUSED' AND paused_because = 'CANARY')
        RETURNING id
        "#,
        act.at,
    )
    .fetch_all(&mut *connection)
    .await?;
    for job in &jobs {
        let subject = crate::resolution::job(*job);
        record(connection, act, "dead-letter-job.pause", subject, json!({})).await?;
    }
    Ok(jobs)
}

/// Resellers are told no more of who did it than that.
async fn cancel_replays(connection: &mut PgConnection, act: Act<'_>) -> Result<Vec<Uuid>, Error> {
    let replays = sqlx::query!(
        r#"
        UPDATE replays SET status = 'CANCELLED', finished_at = $1, updated_at = $1, cancelled_by = 'OPERATOR'
        WHERE status = 'RUNNING' RETURNING id, subscription_id
        "#,
        act.at,
    )
    .fetch_all(&mut *connection)
    .await?;
    for replay in &replays {
        let subject = format!("subscription/{}", replay.subscription_id);
        let details = json!({ "replay": replay.id });
        record(connection, act, "replay.cancel", subject, details).await?;
    }
    Ok(replays.into_iter().map(|replay| replay.id).collect())
}

/// Recoveries end with their outages, and are settled at once: settling one later would note the outage again, from a time before the loss.
async fn forget_outages(connection: &mut PgConnection, act: Act<'_>) -> Result<u64, Error> {
    let cancelled = sqlx::query_scalar!(
        r#"
        UPDATE dead_letter_jobs SET status = 'CANCELLED', finished_at = $1, paused_because = NULL, updated_at = $1, settled = true
        WHERE recovers IS NOT NULL AND finished_at IS NULL RETURNING id
        "#,
        act.at,
    )
    .fetch_all(&mut *connection)
    .await?;
    for job in cancelled {
        let subject = crate::resolution::job(job);
        record(connection, act, "dead-letter-job.cancel", subject, json!({})).await?;
    }
    sqlx::query!("UPDATE dead_letter_jobs SET settled = true WHERE recovers IS NOT NULL AND NOT settled")
        .execute(&mut *connection)
        .await?;
    // An outage that goes on gives up more: of that a recovery is made as ever.
    let outages = sqlx::query!(
        r#"
        UPDATE subscriptions SET outage_since = CASE WHEN failing_since IS NOT NULL THEN now() END
        WHERE outage_since IS NOT NULL
        "#,
    )
    .execute(connection)
    .await?;
    Ok(outages.rows_affected())
}

async fn record(
    connection: &mut PgConnection,
    act: Act<'_>,
    action: &str,
    subject: String,
    details: Value,
) -> Result<(), Error> {
    act.entry(action, subject, details).record(connection).await
}

//! What follows the end of a recovery, however it ended and whichever version ended it: when the next one may begin and about
//! what, and the mail that tells how many were sent again.

use chrono::{DateTime, Utc};
use domain::subscription::{RecoveryEnd, recovery_delay};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::begin::count_given_up;
use crate::read::{Name, Nullable};
use crate::{Error, Store, interval};

/// Recoveries settled in one pass.
const PASS: i64 = 100;

/// A recovery whose consequences have been drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettledRecovery {
    /// Of this subscription.
    pub subscription: Uuid,
    /// How many were sent again.
    pub sent_again: u64,
    /// How many are left that could be, if it was ended before it was through; counted up to 100,000.
    pub remaining: u64,
}

/// A recovery that has ended, and whose row is locked.
struct Ended {
    id: Uuid,
    subscription: Uuid,
    completed: bool,
    because: Option<RecoveryEnd>,
    done: i64,
    per_second: i32,
    until: DateTime<Utc>,
}

impl Ended {
    /// Whether it sent so much that the endpoint is worth another one soon: one that fails now and then would never be through.
    fn got_on(&self) -> bool {
        self.done >= 30 * i64::from(self.per_second)
    }

    /// Whether the next recovery is about what this one has left, too. What a person has stopped is left to people.
    fn goes_on(&self) -> bool {
        matches!(self.because, Some(RecoveryEnd::Failing | RecoveryEnd::Inactive))
    }
}

/// The subscription of an ended recovery, locked.
struct Subject {
    recoveries_ended: i32,
}

impl Store {
    /// Draws the consequences of recoveries that have ended, each once.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; what was settled before stays so.
    pub async fn settle_recoveries(&self, now: DateTime<Utc>) -> Result<Vec<SettledRecovery>, Error> {
        let ended = sqlx::query_scalar!(
            r#"
            SELECT id FROM dead_letter_jobs WHERE recovers IS NOT NULL AND NOT settled AND finished_at IS NOT NULL
            ORDER BY recovers LIMIT $1
            "#,
            PASS,
        )
        .fetch_all(&self.pool)
        .await?;
        let (mut settled, mut failed) = (Vec::new(), None);
        for job in ended {
            // One that the database cannot answer for must not keep the others from theirs.
            match self.settle_one(job, now).await {
                Ok(recovery) => settled.extend(recovery),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if settled.is_empty() => Err(error),
            _ => Ok(settled),
        }
    }

    async fn settle_one(&self, job: Uuid, now: DateTime<Utc>) -> Result<Option<SettledRecovery>, Error> {
        let left = self.count_left(job).await?;
        let mut transaction = self.pool.begin().await?;
        let ended = sqlx::query_as!(
            Ended,
            r#"
            SELECT id, recovers AS "subscription!", status = 'COMPLETED' AS "completed!", ended_because AS "because!: Nullable<Name<_>>", done,
                   per_second, until
            FROM dead_letter_jobs WHERE id = $1 AND recovers IS NOT NULL AND NOT settled AND finished_at IS NOT NULL
            FOR UPDATE SKIP LOCKED
            "#,
            job,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(ended) = ended else {
            return Ok(None);
        };
        let remaining = conclude(&mut transaction, &ended, left, now).await?;
        sqlx::query!(
            "UPDATE dead_letter_jobs SET settled = true WHERE id = $1",
            ended.id
        )
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(Some(SettledRecovery {
            subscription: ended.subscription,
            sent_again: ended.done.unsigned_abs(),
            remaining,
        }))
    }

    /// How many dead letters a recovery has left. Before the subscription is locked, for which completions wait.
    async fn count_left(&self, job: Uuid) -> Result<i64, Error> {
        let mut connection = self.pool.acquire().await?;
        let outage = sqlx::query!(
            r#"
            SELECT s.id, s.outage_since AS "since!" FROM dead_letter_jobs j JOIN subscriptions s ON s.id = j.recovers
            WHERE j.id = $1 AND j.status <> 'COMPLETED' AND s.outage_since IS NOT NULL AND s.deleted_at IS NULL
            "#,
            job,
        )
        .fetch_optional(&mut *connection)
        .await?;
        match outage {
            Some(outage) => count_given_up(&mut connection, outage.id, outage.since).await,
            None => Ok(0),
        }
    }
}

/// Changes the subscription and writes the mail; returns how many are left.
async fn conclude(
    connection: &mut PgConnection,
    ended: &Ended,
    remaining: i64,
    now: DateTime<Utc>,
) -> Result<u64, Error> {
    let subject = sqlx::query_as!(
        Subject,
        r#"
        SELECT recoveries_ended FROM subscriptions WHERE id = $1 AND deleted_at IS NULL
        FOR NO KEY UPDATE
        "#,
        ended.subscription,
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(subject) = subject else {
        return Ok(0);
    };
    let in_a_row = if ended.goes_on() && !ended.got_on() {
        subject.recoveries_ended.saturating_add(1)
    } else {
        0
    };
    schedule_next(connection, ended, in_a_row).await?;
    if ended.done > 0 {
        tell(connection, ended, remaining, now).await?;
    }
    Ok(remaining.unsigned_abs())
}

/// What came after a recovery that is through was made is a matter of the next one; the rest of one that failures have ended is,
/// too.
async fn schedule_next(connection: &mut PgConnection, ended: &Ended, in_a_row: i32) -> Result<(), Error> {
    sqlx::query!(
        r#"
        UPDATE subscriptions
        -- Dead letters that were dated a little before the job are seen a little after it was made.
        SET outage_since = CASE WHEN $2 THEN outage_since ELSE greatest(outage_since, $3::timestamptz - interval '10 seconds') END,
            recover_at = now() + $4::interval, recoveries_ended = $5
        WHERE id = $1
        "#,
        ended.subscription,
        ended.goes_on(),
        ended.until,
        interval(recovery_delay(in_a_row.unsigned_abs())),
        in_a_row,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Gathered as other mails about what happens over and over: one waits, due an hour after the last one was sent.
async fn tell(
    connection: &mut PgConnection,
    ended: &Ended,
    remaining: i64,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let outcome = json!({ "remaining": remaining, "because": ended.because.map(RecoveryEnd::as_str), "completed": ended.completed });
    sqlx::query!(
        r#"
        INSERT INTO emails (id, kind, subscription_id, recipient, data, occurrences, next_attempt_at, created_at)
        SELECT gen_random_uuid(), 'DELIVERIES_RECOVERED', s.id, s.email,
               $2::jsonb || jsonb_build_object('url', s.url, 'description', s.description, 'resellerId', s.reseller_id),
               $3,
               greatest($4, (SELECT max(l.finished_at) + interval '1 hour' FROM emails l
                             WHERE l.subscription_id = s.id AND l.kind = 'DELIVERIES_RECOVERED'
                               AND l.status IN ('SENT', 'FAILED'))),
               $4
        FROM subscriptions s WHERE s.id = $1
        "#,
        ended.subscription,
        outcome,
        ended.done,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

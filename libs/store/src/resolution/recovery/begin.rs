//! Beginning recoveries.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::subscription::RECOVERY_PARTS;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{BY, COUNTED_MAX, NOTE};
use crate::{Act, DeadLetterFilter, DeadLetterLane, DeadLetterReason, Error, Store, audit, interval};

/// Subscriptions looked at at once.
const PAGE: i64 = 100;
/// Pages in one pass.
const PAGES: usize = 10;
/// Recoveries that there may be at once. Each costs every pass of the jobs a step.
const AT_ONCE: i64 = 200;

/// What holds for recoveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryTerms {
    /// Whether there are any for subscriptions that say nothing about it.
    pub enabled: bool,
    /// The requests per second of which one takes its part, where neither the subscription nor the default has a number.
    pub per_second: u32,
    /// What was given up longer ago is left alone.
    pub max_age: Duration,
}

/// A subscription whose outage is over, and whose row is locked.
struct Recovering {
    id: Uuid,
    since: DateTime<Utc>,
    until: DateTime<Utc>,
    wanted: bool,
    requests_per_second: Option<i32>,
}

impl Store {
    /// Begins a recovery of each subscription whose endpoint answers again, as long as something is left that its outage
    /// gave up; returns how many. However many replicas do so at once, there is one for each subscription.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; what has begun before goes on.
    pub async fn begin_recoveries(&self, terms: &RecoveryTerms, now: DateTime<Utc>) -> Result<u64, Error> {
        let mut begun = 0;
        for _ in 0..PAGES {
            let over = self.list_outages_that_are_over().await?;
            let mut failed = None;
            for subscription in &over {
                // One that the database cannot answer for must not keep the others from theirs.
                match self.begin_recovery(*subscription, terms, now).await {
                    Ok(began) => begun += u64::from(began),
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(error) = failed {
                return Err(error);
            }
            if over.len() < usize::try_from(PAGE).unwrap_or(usize::MAX) {
                break;
            }
        }
        Ok(begun)
    }

    /// Those that were looked at least recently come first: one that fails now and then has an outage each time.
    async fn list_outages_that_are_over(&self) -> Result<Vec<Uuid>, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            SELECT s.id FROM subscriptions s
            WHERE s.outage_since IS NOT NULL AND s.failing_since IS NULL AND s.deleted_at IS NULL
              AND s.state IN ('ACTIVE', 'DEGRADED') AND NOT s.suspended
              -- A time that lies further ahead was written by a clock that was wrong.
              AND (s.recover_at IS NULL OR s.recover_at NOT BETWEEN now() AND now() + interval '65 minutes')
              AND NOT EXISTS (SELECT FROM dead_letter_jobs j WHERE j.recovers = s.id AND NOT j.settled)
              AND (SELECT count(*) FROM dead_letter_jobs j WHERE j.recovers IS NOT NULL AND NOT j.settled) < $2
            ORDER BY s.recover_at NULLS FIRST, s.outage_since LIMIT $1
            "#,
            PAGE,
            AT_ONCE,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    async fn begin_recovery(
        &self,
        id: Uuid,
        terms: &RecoveryTerms,
        now: DateTime<Utc>,
    ) -> Result<bool, Error> {
        // Before the lock, for which completions wait.
        let counted = self.count_of_outage(id, terms).await?;
        let mut transaction = self.pool.begin().await?;
        let Some(recovering) = lock(&mut transaction, id, terms).await? else {
            return Ok(false);
        };
        let matching = if recovering.wanted { counted } else { 0 };
        let begun = if matching == 0 {
            forget_outage(&mut transaction, &recovering).await?;
            false
        } else {
            let limit = recovering
                .requests_per_second
                .map(i32::unsigned_abs)
                .or(self.line_terms.requests_per_second)
                .unwrap_or(terms.per_second);
            insert(
                &mut transaction,
                &recovering,
                limit.div_ceil(RECOVERY_PARTS),
                matching,
                now,
            )
            .await?
        };
        transaction.commit().await?;
        Ok(begun)
    }

    async fn count_of_outage(&self, id: Uuid, terms: &RecoveryTerms) -> Result<i64, Error> {
        let mut connection = self.pool.acquire().await?;
        let since = sqlx::query_scalar!(
            "SELECT greatest(outage_since, now() - $2::interval) FROM subscriptions WHERE id = $1 AND outage_since IS NOT NULL",
            id,
            interval(terms.max_age),
        )
        .fetch_optional(&mut *connection)
        .await?;
        match since.flatten() {
            Some(since) => count_given_up(&mut connection, id, since).await,
            None => Ok(0),
        }
    }
}

/// Locks the subscription if its outage is over still.
async fn lock(
    connection: &mut PgConnection,
    id: Uuid,
    terms: &RecoveryTerms,
) -> Result<Option<Recovering>, Error> {
    Ok(sqlx::query_as!(
        Recovering,
        r#"
        SELECT id, greatest(outage_since, now() - $2::interval) AS "since!", now() AS "until!",
               coalesce(resend_after_outage, $3) AS "wanted!", requests_per_second
        FROM subscriptions
        WHERE id = $1 AND outage_since IS NOT NULL AND failing_since IS NULL AND deleted_at IS NULL
          AND state IN ('ACTIVE', 'DEGRADED') AND NOT suspended
          AND (recover_at IS NULL OR recover_at NOT BETWEEN now() AND now() + interval '65 minutes')
        FOR NO KEY UPDATE SKIP LOCKED
        "#,
        id,
        interval(terms.max_age),
        terms.enabled,
    )
    .fetch_optional(connection)
    .await?)
}

/// How many open dead letters there are of what a failing endpoint gave up since a time; counts no further than to a limit.
pub(super) async fn count_given_up(
    connection: &mut PgConnection,
    subscription: Uuid,
    since: DateTime<Utc>,
) -> Result<i64, Error> {
    Ok(sqlx::query_scalar!(
        r#"
        SELECT count(*) AS "count!" FROM (
            SELECT FROM dead_letters
            WHERE state = 'OPEN' AND subscription_id = $1 AND created_at >= $2
              AND lane = 'reseller' AND reason = 'GIVEN_UP' AND error_type <> 'OTHER'
            LIMIT $3) AS letters
        "#,
        subscription,
        since,
        COUNTED_MAX,
    )
    .fetch_one(connection)
    .await?)
}

/// What was under way when the outage ended may still bring a dead letter to light, so there is another look until a minute after the
/// last failure. What is not wanted is forgotten at once.
async fn forget_outage(connection: &mut PgConnection, recovering: &Recovering) -> Result<(), Error> {
    sqlx::query!(
        r#"
        UPDATE subscriptions
        SET outage_since = CASE WHEN $2 AND last_failure_at > now() - interval '1 minute' THEN outage_since END,
            recover_at = now() + interval '10 seconds', recoveries_ended = 0
        WHERE id = $1
        "#,
        recovering.id,
        recovering.wanted,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The filter is one that an earlier version reads too: that only what the endpoint has failed at is meant follows from the
/// job's being a recovery.
async fn insert(
    connection: &mut PgConnection,
    recovering: &Recovering,
    per_second: u32,
    matching: i64,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let filter = DeadLetterFilter {
        lane: Some(DeadLetterLane::Reseller),
        reason: Some(DeadLetterReason::GivenUp),
        subscription: Some(recovering.id),
        since: Some(recovering.since),
        ..DeadLetterFilter::default()
    };
    let id = audit::id_at(now);
    let inserted = sqlx::query!(
        r#"
        INSERT INTO dead_letter_jobs (id, action, filter, note, per_second, until, matching, created_by, created_at,
                                      paced_to, updated_at, recovers)
        VALUES ($1, 'REPLAY', $2, $3, $4, $5, $6, $7, $8, $8, $8, $9)
        ON CONFLICT (recovers) WHERE recovers IS NOT NULL AND NOT settled DO NOTHING
        "#,
        id,
        filter.to_json(),
        NOTE,
        i32::try_from(per_second).unwrap_or(i32::MAX),
        recovering.until,
        matching,
        BY,
        now,
        recovering.id,
    )
    .execute(&mut *connection)
    .await?;
    if inserted.rows_affected() == 0 {
        return Ok(false);
    }
    let act = Act {
        by: BY,
        note: Some(NOTE),
        at: now,
    };
    let details = json!({
        "action": "REPLAY", "matching": matching, "perSecond": per_second, "filter": filter.to_json(),
        "recovers": recovering.id,
    });
    let entry = act.entry("dead-letter-job.create", super::super::job(id), details);
    entry.record(connection).await?;
    Ok(true)
}

//! What the database holds, which is what was promised.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use sqlx::{AssertSqlSafe, PgPool};
use uuid::{NoContext, Timestamp, Uuid};

const POLL: Duration = Duration::from_millis(100);
/// How long what is under way at the end of a load may take to be finished.
pub(super) const STRAGGLERS: Duration = Duration::from_secs(90);

/// How many rows there are `of` a table, with a condition or without.
pub(super) async fn count(pool: &PgPool, of: &'static str) -> Result<u64> {
    let statement = AssertSqlSafe(format!("SELECT count(*) FROM {of}"));
    let count: i64 = sqlx::query_scalar(statement).fetch_one(pool).await?;
    Ok(u64::try_from(count)?)
}

/// Whether every push is in a terminal state. Three questions, because each has an index of its own.
pub(super) async fn pushes_are_finished(pool: &PgPool) -> Result<bool> {
    let unfinished: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM push_notifications WHERE status = 'PENDING')
             OR EXISTS (SELECT FROM push_notifications WHERE status = 'IN_MEMORY')
             OR EXISTS (SELECT FROM push_notifications WHERE status IN ('SCHEDULED', 'RETRY'))",
    )
    .fetch_one(pool)
    .await?;
    Ok(!unfinished)
}

/// Whether every notification is in a terminal state. Several questions, as for pushes.
pub(super) async fn notifications_are_finished(pool: &PgPool) -> Result<bool> {
    let unfinished: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM notifications WHERE status = 'PENDING')
             OR EXISTS (SELECT FROM notifications WHERE status = 'IN_MEMORY')
             OR EXISTS (SELECT FROM notifications WHERE status = 'RETRY')
             OR EXISTS (SELECT FROM notifications WHERE status = 'SCHEDULED')",
    )
    .fetch_one(pool)
    .await?;
    Ok(!unfinished)
}

/// The subscription of a run that has one.
pub(super) async fn only_subscription(pool: &PgPool) -> Result<Uuid> {
    Ok(sqlx::query_scalar("SELECT id FROM subscriptions")
        .fetch_one(pool)
        .await?)
}

/// A moment from which on events are looked at: ids tell when they were made, and what waits from before is passed over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Since(Uuid);

impl Since {
    pub(super) fn now() -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let smallest = Timestamp::from_unix(NoContext, now.as_secs(), now.subsec_nanos());
        let bits = Uuid::new_v7(smallest).as_u128() & !((1 << 80) - 1);
        Ok(Self(Uuid::from_u128(bits)))
    }
}

/// A time of the wall clock, as the services write it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment(f64);

impl Moment {
    pub(super) fn now() -> Result<Self> {
        Ok(Self(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64()))
    }

    pub(super) fn plus(self, span: Duration) -> Self {
        Self(self.0 + span.as_secs_f64())
    }
}

/// Notifications whose attempt was answered and recorded as SENT from one moment until another.
pub(super) async fn sent_within(pool: &PgPool, since: Since, from: Moment, to: Moment) -> Result<u64> {
    let count: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM notifications
         WHERE id >= $3 AND status = 'SENT' AND finished_at >= to_timestamp($1) AND finished_at < to_timestamp($2)",
    )
    .bind(from.0)
    .bind(to.0)
    .bind(since.0)
    .fetch_one(pool)
    .await?;
    Ok(u64::try_from(count)?)
}

/// Returns when nothing that was made since then waits to be sent now: everything is finished or in line for its quota.
pub(super) async fn settled(pool: &PgPool, since: Since) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < STRAGGLERS {
        let under_way: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM notifications WHERE id >= $1
                            AND (status IN ('PENDING', 'IN_MEMORY')
                                 OR CASE status WHEN 'SCHEDULED' THEN reason = 'RATE'
                                                ELSE next_attempt_at < now() + interval '1 minute' END))",
        )
        .bind(since.0)
        .fetch_one(pool)
        .await?;
        if !under_way {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
    bail!("notifications are still under way {STRAGGLERS:?} after the last event")
}

//! What the database holds of the lane, which is what was promised.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use sqlx::PgPool;

const POLL: Duration = Duration::from_millis(50);

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
pub(super) async fn sent_within(pool: &PgPool, from: Moment, to: Moment) -> Result<u64> {
    let count: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM notifications
         WHERE status = 'SENT' AND finished_at >= to_timestamp($1) AND finished_at < to_timestamp($2)",
    )
    .bind(from.0)
    .bind(to.0)
    .fetch_one(pool)
    .await?;
    Ok(u64::try_from(count)?)
}

/// How many notifications have a status.
pub(super) async fn count_of(pool: &PgPool, status: &str) -> Result<u64> {
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM notifications WHERE status = $1")
        .bind(status)
        .fetch_one(pool)
        .await?;
    Ok(u64::try_from(count)?)
}

/// All events.
pub(super) async fn events(pool: &PgPool) -> Result<u64> {
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM events")
        .fetch_one(pool)
        .await?;
    Ok(u64::try_from(count)?)
}

/// Returns when nothing waits to be sent now: everything is finished or left to another day.
pub(super) async fn settled(pool: &PgPool, limit: Duration) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < limit {
        let under_way: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM notifications WHERE status = 'PENDING')
                 OR EXISTS (SELECT FROM notifications WHERE status = 'IN_MEMORY')
                 OR EXISTS (SELECT FROM notifications
                            WHERE status IN ('SCHEDULED', 'RETRY') AND next_attempt_at < now() + interval '1 minute')",
        )
        .fetch_one(pool)
        .await?;
        if !under_way {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
    bail!("notifications are still under way {limit:?} after the last event")
}

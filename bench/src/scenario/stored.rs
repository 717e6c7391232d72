//! What the database holds at the end, which is what was promised.

use anyhow::Result;
use sqlx::PgPool;

/// All pushes.
pub(crate) async fn count(pool: &PgPool) -> Result<u64> {
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM push_notifications")
        .fetch_one(pool)
        .await?;
    Ok(u64::try_from(count)?)
}

/// Whether every push is in a terminal state. Three questions, because each has an index of its own.
pub(crate) async fn is_finished(pool: &PgPool) -> Result<bool> {
    let unfinished: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM push_notifications WHERE status = 'PENDING')
             OR EXISTS (SELECT FROM push_notifications WHERE status = 'IN_MEMORY')
             OR EXISTS (SELECT FROM push_notifications WHERE status IN ('SCHEDULED', 'RETRY'))",
    )
    .fetch_one(pool)
    .await?;
    Ok(!unfinished)
}

/// How many pushes have a status.
pub(crate) async fn count_of(pool: &PgPool, status: &str) -> Result<u64> {
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM push_notifications WHERE status = $1")
        .bind(status)
        .fetch_one(pool)
        .await?;
    Ok(u64::try_from(count)?)
}

//! Inserting rows like those of pushes with nothing before and behind it.
//!
//! The SQL of the product is in `store`; here a table of its own is filled, with the columns, indexes and constraints of
//! the product's but without partitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{MEASURED, WARM_UP};

const TABLE: &str = "bench_floor";

/// How rows come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inserts {
    /// Connections that write at the same time.
    pub(crate) writers: usize,
    /// Rows of one statement, which is one commit.
    pub(crate) batch: usize,
}

/// Rows a second that are durable, without Postrider.
pub(crate) async fn inserts(url: &str, inserts: Inserts) -> Result<f64> {
    let mut connection = PgConnection::connect(url).await?;
    let statement = format!("CREATE TABLE {TABLE} (LIKE push_notifications INCLUDING ALL)");
    connection.execute(AssertSqlSafe(statement)).await?;
    let measured = write(url, inserts).await;
    connection
        .execute(AssertSqlSafe(format!("DROP TABLE {TABLE}")))
        .await?;
    connection.close().await?;
    measured
}

async fn write(url: &str, inserts: Inserts) -> Result<f64> {
    let rows = Arc::new(AtomicU64::new(0));
    let mut writers = JoinSet::new();
    let from = Instant::now() + WARM_UP;
    for _ in 0..inserts.writers {
        let mut connection = PgConnection::connect(url).await.context("failed to connect")?;
        let rows = Arc::clone(&rows);
        writers.spawn(async move {
            while Instant::now() < from + MEASURED {
                insert(&mut connection, inserts.batch).await?;
                let now = Instant::now();
                if (from..from + MEASURED).contains(&now) {
                    rows.fetch_add(inserts.batch as u64, Ordering::Relaxed);
                }
            }
            connection.close().await
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    Ok(rows.load(Ordering::Relaxed) as f64 / MEASURED.as_secs_f64())
}

async fn insert(connection: &mut PgConnection, rows: usize) -> sqlx::Result<()> {
    let ids: Vec<Uuid> = (0..rows).map(|_| Uuid::now_v7()).collect();
    let push_keys: Vec<String> = ids.iter().map(|id| format!("bench-{}", id.simple())).collect();
    let statement = format!(
        "INSERT INTO {TABLE} (id, status, platform, message_prototype_key, push_key, message, created_at, leased_until)
         SELECT i.id, 'IN_MEMORY', 'IOS', 'Hello', i.push_key, 'Hello client!', now(), now() + interval '1 hour'
         FROM UNNEST($1::uuid[], $2::text[]) AS i(id, push_key)"
    );
    sqlx::query(AssertSqlSafe(statement))
        .bind(&ids)
        .bind(&push_keys)
        .execute(connection)
        .await?;
    Ok(())
}

//! Inserting rows like those of events and their notifications with nothing before and behind it.
//!
//! The SQL of the product is in `store`; here tables of their own are filled, with the columns, indexes and constraints of
//! the product's but without partitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Inserts, MEASURED, WARM_UP};

/// About the body of a delivery.
const BODY: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
                    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
                    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// Events a second that are durable together with one notification each, without Postrider.
pub(crate) async fn events(url: &str, inserts: Inserts) -> Result<f64> {
    let mut connection = PgConnection::connect(url).await?;
    connection
        .execute(
            "CREATE TABLE bench_events (LIKE events INCLUDING ALL);
             CREATE TABLE bench_notifications (LIKE notifications INCLUDING ALL)",
        )
        .await?;
    let measured = write(url, inserts).await;
    connection
        .execute("DROP TABLE bench_events, bench_notifications")
        .await?;
    connection.close().await?;
    measured
}

async fn write(url: &str, inserts: Inserts) -> Result<f64> {
    let events = Arc::new(AtomicU64::new(0));
    let mut writers = JoinSet::new();
    let from = Instant::now() + WARM_UP;
    for _ in 0..inserts.writers {
        let mut connection = PgConnection::connect(url).await?;
        let events = Arc::clone(&events);
        writers.spawn(async move {
            let subscription = Uuid::now_v7();
            while Instant::now() < from + MEASURED {
                insert(&mut connection, subscription, inserts.batch).await?;
                if (from..from + MEASURED).contains(&Instant::now()) {
                    events.fetch_add(inserts.batch as u64, Ordering::Relaxed);
                }
            }
            connection.close().await
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    Ok(events.load(Ordering::Relaxed) as f64 / MEASURED.as_secs_f64())
}

async fn insert(connection: &mut PgConnection, subscription: Uuid, events: usize) -> sqlx::Result<()> {
    let ids = || (0..events).map(|_| Uuid::now_v7()).collect::<Vec<_>>();
    sqlx::query(
        "WITH event AS (
             INSERT INTO bench_events (id, event_id, reseller_id, type, body, occurred_at, created_at)
             SELECT id, id::text, 'bench-0000', 'bench.happened', $3, now(), now() FROM UNNEST($1::uuid[]) AS id)
         INSERT INTO bench_notifications (id, event, subscription_id, reseller_id, event_type, status, leased_until,
                                          payload_bytes, created_at, updated_at)
         SELECT i.id, i.event, $4, 'bench-0000', 'bench.happened', 'IN_MEMORY', now() + interval '1 hour', length($3),
                now(), now()
         FROM UNNEST($1::uuid[], $2::uuid[]) AS i(event, id)",
    )
    .bind(ids())
    .bind(ids())
    .bind(BODY)
    .bind(subscription)
    .execute(connection)
    .await?;
    Ok(())
}

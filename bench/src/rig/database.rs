//! The database of one run.
//!
//! The SQL of the product is in `store`; what is here makes, empties and removes a database, which the product never does.

use anyhow::{Context as _, Result};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, PgPool};

/// Connections that the harness itself needs besides those of the floors.
const CONNECTIONS: u32 = 8;

/// Creates the database `name` on the server of `url`; returns connections to it and its URL.
pub(crate) async fn create(url: &str, name: &str) -> Result<(PgPool, String)> {
    execute(url, format!("CREATE DATABASE {name}"))
        .await
        .context("failed to create a database to measure in")?;
    let own = with_database(url, name);
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .connect_lazy(&own)
        .context("DATABASE_URL cannot be read")?;
    Ok((pool, own))
}

/// Drops it, even while clients are connected.
pub(crate) async fn drop(url: &str, name: &str) -> Result<()> {
    execute(url, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        .await
        .context("failed to drop the database")
}

/// Forgets all pushes, events and subscriptions, and starts the next scenario with a fresh checkpoint.
pub(crate) async fn empty(pool: &PgPool) -> Result<()> {
    pool.execute(
        "TRUNCATE push_notifications, send_attempts, dead_letters, idempotency_keys, leases, events, notifications,
             delivery_attempts, event_keys, delivery_statistics, subscriptions, webpush_clients, webpush_messages CASCADE",
    )
    .await
    .context("failed to empty the tables")?;
    checkpoint(pool).await;
    Ok(())
}

/// Not everyone may ask for one; then it comes when it comes.
pub(crate) async fn checkpoint(pool: &PgPool) {
    let _ = pool.execute("CHECKPOINT").await;
}

/// Tells the planner what is in the tables, as the server does by itself within a minute. Until then a table that was just
/// emptied is read by other plans, and a round would measure when that minute ended.
pub(crate) async fn analyze(pool: &PgPool) -> Result<()> {
    pool.execute("ANALYZE")
        .await
        .context("failed to analyze the tables")?;
    Ok(())
}

async fn execute(url: &str, statement: String) -> Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    connection.execute(AssertSqlSafe(statement)).await?;
    connection.close().await?;
    Ok(())
}

/// `url` with another database name.
fn with_database(url: &str, name: &str) -> String {
    let (base, query) = match url.split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (url, String::new()),
    };
    let authority = base.find("://").map_or(0, |at| at + 3);
    let end = base[authority..]
        .find('/')
        .map_or(base.len(), |at| authority + at);
    format!("{}/{name}{query}", &base[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_the_database_is_replaced() {
        for (url, expected) in [
            ("postgres://u:p@h:5432/a", "postgres://u:p@h:5432/b"),
            ("postgres://h", "postgres://h/b"),
            (
                "postgres://u@h/a?sslmode=disable&host=/run",
                "postgres://u@h/b?sslmode=disable&host=/run",
            ),
            ("postgres:///a?host=/run", "postgres:///b?host=/run"),
        ] {
            assert_eq!(with_database(url, "b"), expected);
        }
    }
}

//! A database for each test. It is copied from one that has the schema already: a copy takes an eighth of the time that all
//! migrations take.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool};
use tokio::runtime::Builder;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::servers::database_url;

/// Held in PostgreSQL by the test that makes the template.
const TEMPLATE_LOCK: i64 = 0x7465_7374_6b69_7401;

/// After how long without a test process that took it a template is dropped: longer than such a process lives.
const TEMPLATE_HOURS: i32 = 6;

/// How many connections a test's pool has at most.
const MAX_CONNECTIONS: u32 = 5;

static TEMPLATE: OnceCell<String> = OnceCell::const_new();

/// Runs a test with a database of its own, named after `path`, the path of the test. What a test that fails has left there stays
/// until it runs again.
///
/// # Panics
///
/// When PostgreSQL is missing, or the test panics.
#[expect(
    clippy::print_stderr,
    reason = "a test that fails has its output shown, and is looked into by its database"
)]
pub fn on_database<T: Future<Output = ()>>(path: &str, test: impl FnOnce(PgPool) -> T) {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let server: PgConnectOptions = database_url().parse().expect("DATABASE_URL");
        let name = format!("test_{:016x}", hash_of(path));
        let mut connection = server.connect().await.expect("PostgreSQL");
        let template = TEMPLATE.get_or_init(|| template(&server)).await;
        drop_database(&mut connection, &name).await;
        execute(
            &mut connection,
            format!("CREATE DATABASE {name} TEMPLATE {template}"),
        )
        .await;
        connection.close().await.expect("an end of the connection");
        eprintln!("database {name}");

        let pool = PgPoolOptions::new()
            .max_connections(MAX_CONNECTIONS)
            .idle_timeout(Duration::from_secs(1))
            .connect_with(server.clone().database(&name));
        let pool = pool.await.expect("the database of the test");
        test(pool.clone()).await;
        // A connection that the test still holds goes with its database.
        let _ = timeout(Duration::from_secs(10), pool.close()).await;
        let mut connection = server.connect().await.expect("PostgreSQL");
        drop_database(&mut connection, &name).await;
    });
}

/// The database with the schema. Of the day, since migrations make partitions by the time of the server.
async fn template(server: &PgConnectOptions) -> String {
    let mut connection = server.connect().await.expect("PostgreSQL");
    // Goes with the connection.
    sqlx::query("SELECT pg_advisory_lock($1)")
        .bind(TEMPLATE_LOCK)
        .execute(&mut connection)
        .await
        .expect("the lock of the template");
    let (day, now): (String, String) = sqlx::query_as("SELECT to_char(now(), 'YYYYMMDD'), now()::text")
        .fetch_one(&mut connection)
        .await
        .expect("the day");
    let schema: Vec<_> = store::MIGRATOR
        .iter()
        .map(|migration| &migration.checksum)
        .collect();
    let name = format!("template_{:016x}_{day}", hash_of(&schema));
    let is_there: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
        .bind(&name)
        .fetch_one(&mut connection)
        .await
        .expect("the list of databases");
    if !is_there {
        drop_old_templates(&mut connection).await;
        let unfinished = format!("{name}_unfinished");
        drop_database(&mut connection, &unfinished).await;
        execute(&mut connection, format!("CREATE DATABASE {unfinished}")).await;
        let mut migrated = server
            .clone()
            .database(&unfinished)
            .connect()
            .await
            .expect("the template");
        store::MIGRATOR
            .run_direct(None, &mut migrated, false)
            .await
            .expect("migrations");
        migrated.close().await.expect("an end of the connection");
        execute(
            &mut connection,
            format!("ALTER DATABASE {unfinished} RENAME TO {name}"),
        )
        .await;
    }
    // By which others know that it is in use.
    execute(&mut connection, format!("COMMENT ON DATABASE {name} IS '{now}'")).await;
    connection.close().await.expect("an end of the connection");
    name
}

/// Drops the templates that no test process has taken for hours: of earlier days, and of schemas that are not tested any more. To be called under the
/// lock, so that no process takes one meanwhile.
async fn drop_old_templates(connection: &mut PgConnection) {
    let old: Vec<String> = sqlx::query_scalar(
        "SELECT datname FROM pg_database
         WHERE CASE WHEN datname ~ '^template_[0-9a-f]{16}_[0-9]{8}(_unfinished)?$'
               -- Without a comment it was never finished, or made when none was written: it is left alone on its day.
               THEN coalesce(shobj_description(oid, 'pg_database')::timestamptz, to_date(split_part(datname, '_', 3), 'YYYYMMDD') + 1)
                    < now() - make_interval(hours => $1)
               ELSE false END",
    )
    .bind(TEMPLATE_HOURS)
    .fetch_all(&mut *connection)
    .await
    .expect("the list of databases");
    for name in old {
        drop_database(connection, &name).await;
    }
}

fn hash_of(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

async fn drop_database(connection: &mut PgConnection, name: &str) {
    execute(connection, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
}

async fn execute(connection: &mut PgConnection, statement: String) {
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(connection)
        .await
        .expect("a statement about databases");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_that_nothing_takes_any_more_are_dropped_and_no_others() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server: PgConnectOptions = database_url().parse().unwrap();
            let mut connection = server.connect().await.unwrap();
            let [without_use, in_use, forgotten] = [
                "template_00000000000000a1_20200101",
                "template_00000000000000a2_20200101",
                "template_00000000000000a3_20200101_unfinished",
            ];
            sqlx::query("SELECT pg_advisory_lock($1)")
                .bind(TEMPLATE_LOCK)
                .execute(&mut connection)
                .await
                .unwrap();
            for name in [without_use, in_use, forgotten] {
                drop_database(&mut connection, name).await;
                execute(&mut connection, format!("CREATE DATABASE {name}")).await;
            }
            for (name, age) in [(without_use, "7 hours"), (in_use, "5 hours")] {
                let at: String = sqlx::query_scalar("SELECT (now() - $1::text::interval)::text")
                    .bind(age)
                    .fetch_one(&mut connection)
                    .await
                    .unwrap();
                execute(&mut connection, format!("COMMENT ON DATABASE {name} IS '{at}'")).await;
            }
            drop_old_templates(&mut connection).await;
            let left: Vec<String> = sqlx::query_scalar(
                "SELECT datname FROM pg_database WHERE starts_with(datname, 'template_00000000000000a')",
            )
            .fetch_all(&mut connection)
            .await
            .unwrap();
            drop_database(&mut connection, in_use).await;
            assert_eq!(left, [in_use]);
        });
    }
}

//! Indexes of large tables that hold rows. They are made while writers go on, which no migration can do: each outlives a transaction.
//!
//! A search that needs one that is still missing says so instead of reading the table.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use crate::{Error, Store};

/// What an index is for that a migration may have left to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LateIndex {
    /// Finding pushes by their device.
    PushesByDevice,
    /// Finding what a job has resolved.
    DeadLettersByJob,
    /// Finding the notifications of a subscription that failed or were given up.
    NotificationsEndedBadly,
}

/// An index that is missing, or is not attached to its parent yet.
struct Missing {
    purpose: &'static str,
    table: String,
    name: String,
    made: bool,
}

const DEVICE: &str = "push_notifications_device";
const ENDED_BADLY: &str = "notifications_ended_badly";
const JOB: &str = "dead_letters_job";

/// An index that each partition has of its own.
struct Partitioned {
    /// Of the parent; a partition's has the same end behind the partition's name.
    name: &'static str,
    table: &'static str,
    suffix: &'static str,
    definition: &'static str,
}

const PARTITIONED: [Partitioned; 2] = [
    Partitioned {
        name: DEVICE,
        table: "push_notifications",
        suffix: "_device",
        definition: "(hashtextextended(push_key, 0), created_at, id)",
    },
    Partitioned {
        name: ENDED_BADLY,
        table: "notifications",
        suffix: "_ended_badly",
        definition: "(subscription_id, id) WHERE status IN ('FAILED', 'GIVEN_UP')",
    },
];

impl LateIndex {
    fn name(self) -> &'static str {
        match self {
            Self::PushesByDevice => DEVICE,
            Self::DeadLettersByJob => JOB,
            Self::NotificationsEndedBadly => ENDED_BADLY,
        }
    }
}

impl Store {
    /// Makes the indexes that migrations have left to be made, one after the other; returns their names. Only one caller at a time makes
    /// any. One that goes away leaves an index that is finished without it, or that the next caller makes again.
    pub async fn make_indexes(&self) -> Result<Vec<String>, Error> {
        if !self.is_migrated().await? {
            return Ok(Vec::new());
        }
        let mut connection = self.pool.acquire().await?;
        if missing(&mut connection).await?.is_empty() {
            return Ok(Vec::new());
        }
        // It does not go back: it has settings, and may be busy for minutes after its caller has gone.
        let mut connection = connection.detach();
        if !is_alone(&mut connection).await? {
            connection.close().await?;
            return Ok(Vec::new());
        }
        let mut made = Vec::new();
        // Looked at again: another one may have finished meanwhile.
        for index in missing(&mut connection).await? {
            make(&mut connection, &index).await?;
            made.push(index.name);
        }
        connection.close().await?;
        Ok(made)
    }

    /// Whether an index covers all of its table.
    pub(crate) async fn has_index(&self, index: LateIndex) -> Result<bool, Error> {
        let mut connection = self.pool.acquire().await?;
        let missing = missing(&mut connection).await?;
        Ok(missing.iter().all(|one| one.purpose != index.name()))
    }
}

async fn missing(connection: &mut PgConnection) -> Result<Vec<Missing>, Error> {
    let mut missing = Vec::new();
    for index in &PARTITIONED {
        missing.extend(missing_of(connection, index).await?);
    }
    let has_jobs = sqlx::query_scalar!(
        r#"
        SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('dead_letters_job') AND indisvalid) AS "has!"
        "#
    )
    .fetch_one(connection)
    .await?;
    if !has_jobs {
        missing.push(Missing {
            purpose: JOB,
            name: JOB.to_owned(),
            table: "dead_letters".to_owned(),
            made: false,
        });
    }
    Ok(missing)
}

async fn missing_of(connection: &mut PgConnection, index: &Partitioned) -> Result<Vec<Missing>, Error> {
    let partitions = sqlx::query!(
        r#"
        SELECT c.relname::text AS "table!",
               EXISTS (SELECT FROM pg_index k
                       WHERE k.indexrelid = to_regclass(c.relname::text || $3) AND k.indisvalid) AS "made!"
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = to_regclass($1)
          AND NOT EXISTS (SELECT FROM pg_inherits x JOIN pg_index k ON k.indexrelid = x.inhrelid
                          WHERE x.inhparent = to_regclass($2) AND k.indrelid = c.oid AND k.indisvalid)
        ORDER BY c.relname DESC
        "#,
        index.table,
        index.name,
        index.suffix,
    )
    .fetch_all(connection)
    .await?;
    let missing = partitions.into_iter().map(|partition| Missing {
        purpose: index.name,
        name: format!("{}{}", partition.table, index.suffix),
        table: partition.table,
        made: partition.made,
    });
    Ok(missing.collect())
}

/// Takes the one place for those who make indexes, until the connection ends.
async fn is_alone(connection: &mut PgConnection) -> Result<bool, Error> {
    Ok(
        sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock(hashtext('postrider.indexes')) AS "alone!""#)
            .fetch_one(connection)
            .await?,
    )
}

/// What could not be finished is there as an invalid index, and goes first. Waiting for transactions that are under way holds up no reader
/// and no writer, so it may take its time.
async fn make(connection: &mut PgConnection, index: &Missing) -> Result<(), Error> {
    let Missing { name, table, .. } = index;
    let partitioned = PARTITIONED.iter().find(|one| one.name == index.purpose);
    if !index.made {
        let definition = partitioned.map_or("(job_id, id) WHERE job_id IS NOT NULL", |one| one.definition);
        run(connection, "SET statement_timeout = 0").await?;
        run(connection, "SET lock_timeout = 0").await?;
        // Where it is set, the server would end what is under way when its caller goes away.
        run(connection, "SET client_connection_check_interval = 0").await?;
        run(connection, &format!("DROP INDEX CONCURRENTLY IF EXISTS {name}")).await?;
        run(
            connection,
            &format!("CREATE INDEX CONCURRENTLY {name} ON {table} {definition}"),
        )
        .await?;
    }
    if let Some(parent) = partitioned {
        // What waits for this lock holds up the plans of all statements about the table.
        run(connection, "SET lock_timeout = '100ms'").await?;
        let attach = format!("ALTER INDEX {} ATTACH PARTITION {name}", parent.name);
        run(connection, &attach).await?;
    }
    Ok(())
}

/// The names in `sql` are those of the schema.
async fn run(connection: &mut PgConnection, sql: &str) -> Result<(), Error> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await?;
    Ok(())
}

//! `postrider migrate`: the schema, and the partitions of the coming months.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use config::Sources;
use domain::clock::{Clock as _, SystemClock};
use domain::month::Month;
use tokio::time::Instant;

use super::database::Database;
use crate::output;
use crate::progress::Progress;

/// How often a database that is away is asked again.
const POLL: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
#[command(after_help = "May be repeated, and run by several at once: what is there is left alone.")]
pub(crate) struct MigrateArgs {
    /// How long to wait for a database that is not there yet.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait: u64,
}

/// Applies what is missing and says what it was.
pub(crate) async fn run(sources: &Sources, args: &MigrateArgs) -> anyhow::Result<()> {
    let database = Database::open(sources).await?;
    await_database(&database, Duration::from_secs(args.wait)).await?;
    let (before, after) = database
        .store
        .migrate()
        .await
        .with_context(|| database.failure("migrate"))?;
    for migration in store::MIGRATOR
        .iter()
        .skip(before)
        .take(after.saturating_sub(before))
    {
        output::result(format_args!(
            "applied {:04} {}",
            migration.version, migration.description
        ))?;
    }
    let months = database.config.push.partitions.months_ahead + 2;
    // As the retry-worker does it: the month before as well, for identifiers that were made just before midnight.
    let first = Month::containing(SystemClock.now()).minus(1);
    let creating = async {
        let created = database.store.create_partitions(first, months).await?;
        Ok::<_, store::Error>(created + database.store.create_webpush_partitions(first, months).await?)
    };
    let created = creating
        .await
        .with_context(|| database.failure("create partitions in"))?;
    if created > 0 {
        output::result(format_args!("created {created} partitions"))?;
    }
    output::result(format_args!("the schema is up to date: {after} migrations"))?;
    Ok(())
}

async fn await_database(database: &Database, patience: Duration) -> anyhow::Result<()> {
    let deadline = Instant::now() + patience;
    let _progress = Progress::waiting("waiting for the database");
    loop {
        match database.store.ping().await {
            Ok(()) => return Ok(()),
            Err(error) if error.is_transient() && Instant::now() < deadline => tokio::time::sleep(POLL).await,
            Err(error) => return Err(error).with_context(|| database.failure("reach")),
        }
    }
}

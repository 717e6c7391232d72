//! Millions of stored messages that take turns with none: a second partition of the present month, which takes the place of the one that is
//! in use and gives it back, so that rounds with them and without come one after another, with the same nodes.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use sqlx::{AssertSqlSafe, Executor as _};
use tokio::task::JoinSet;

use super::BODY;
use crate::load::CHANNEL;
use crate::rig::Rig;
use crate::scenario::growth;
use crate::tell;

/// Messages that wait for one user agent, and that are inserted by one statement.
const OF_A_USER_AGENT: u64 = 100;
const BATCH: u64 = 200_000;
/// Statements that insert at the same time.
const WRITERS: u64 = 2;
/// Messages that are inserted and vacuumed a second, about.
const PER_SECOND: u64 = 40_000;
/// What a message takes with its index, its message id being as long as those that are made.
const BYTES: u64 = 680;

/// About how long so many messages take.
pub(super) fn expected(rows: u64) -> Duration {
    Duration::from_secs(rows / PER_SECOND)
}

/// The partitions of the present month.
pub(super) struct Backlog<'a> {
    rig: &'a Rig,
    empty: String,
    full: String,
    /// Between these days.
    bounds: (String, String),
    is_full: bool,
}

impl<'a> Backlog<'a> {
    /// Has so many messages wait, for user agents that do not come, and keeps them aside.
    pub(super) async fn make(rig: &'a Rig, rows: u64) -> Result<Self> {
        growth::expect_bytes(rig, "webpush", rows, BYTES, "--waiting").await?;
        let (month, from, to): (String, String, String) = sqlx::query_as(
            r#"SELECT to_char(month, '"y"YYYY"m"MM'), month::date::text, (month + interval '1 month')::date::text
               FROM date_trunc('month', now() AT TIME ZONE 'UTC') AS month"#,
        )
        .fetch_one(&rig.pool)
        .await?;
        let backlog = Self {
            rig,
            empty: format!("webpush_messages_{month}"),
            // Whatever reads the month of a partition reads the end of its name.
            full: format!("webpush_messages_full_{month}"),
            bounds: (from, to),
            is_full: false,
        };
        backlog.create().await?;
        let start = Instant::now();
        backlog.fill(rows).await?;
        tell(format_args!(
            "webpush: inserted and vacuumed {rows} messages in {:.0} s",
            start.elapsed().as_secs_f64()
        ));
        Ok(backlog)
    }

    /// As the partition that it takes the place of. The constraint lets it do so without being read.
    async fn create(&self) -> Result<()> {
        let Self { empty, full, .. } = self;
        let (from, to) = &self.bounds;
        let options: String = sqlx::query_scalar(
            "SELECT coalesce('WITH (' || array_to_string(reloptions, ', ') || ')', '') FROM pg_class WHERE oid = to_regclass($1)",
        )
        .bind(empty.as_str())
        .fetch_one(&self.rig.pool)
        .await?;
        let create = format!(
            "CREATE TABLE {full} (LIKE webpush_messages INCLUDING ALL,
                 CONSTRAINT of_the_month CHECK (month >= DATE '{from}' AND month < DATE '{to}')) {options}"
        );
        let created = self.rig.pool.execute(AssertSqlSafe(create)).await;
        created.context("failed to make a partition")?;
        Ok(())
    }

    async fn fill(&self, rows: u64) -> Result<()> {
        tell(format_args!("webpush: inserting {rows} messages"));
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let pool = self.rig.pool.clone();
            let starts = (writer * BATCH..rows).step_by(usize::try_from(WRITERS * BATCH)?);
            let own: Vec<String> = starts
                .map(|start| self.insert(start, rows.min(start + BATCH)))
                .collect();
            writers.spawn(async move {
                for statement in own {
                    let inserted = pool.execute(AssertSqlSafe(statement)).await;
                    inserted.context("failed to insert messages")?;
                }
                anyhow::Ok(())
            });
        }
        for written in writers.join_all().await {
            written?;
        }
        // What autovacuum would have done by itself, had they come at a natural pace.
        let vacuum = format!("VACUUM ANALYZE {}", self.full);
        self.rig.pool.execute(AssertSqlSafe(vacuum)).await?;
        Ok(())
    }

    fn insert(&self, from: u64, to: u64) -> String {
        let (full, month) = (&self.full, &self.bounds.0);
        // What a crash would lose is made again by the next run: nothing waits for the disk.
        format!(
            "SET synchronous_commit = off;
             INSERT INTO {full} (uaid, month, channel, version, received_at, expires_at, data, encoding)
             SELECT md5((n / {OF_A_USER_AGENT})::text)::uuid, DATE '{month}', '{CHANNEL}',
                    'gAAAAABp' || left(repeat(md5(n::text), 7), 196),
                    now(), now() + interval '30 days', decode(repeat('78', {BODY}), 'hex'), 'aes128gcm'
             FROM generate_series({from}::bigint, {to} - 1) AS n"
        )
    }

    /// Has the nodes see all of them, or none, not even what the rounds before have stored.
    pub(super) async fn show(&mut self, full: bool) -> Result<()> {
        if !full {
            let empty = format!("TRUNCATE {}", self.empty);
            self.rig.pool.execute(AssertSqlSafe(empty)).await?;
        }
        let (before, then) = if full {
            (&self.empty, &self.full)
        } else {
            (&self.full, &self.empty)
        };
        if full != self.is_full {
            let (from, to) = &self.bounds;
            let swap = format!(
                "ALTER TABLE webpush_messages DETACH PARTITION {before};
                 ALTER TABLE webpush_messages ATTACH PARTITION {then} FOR VALUES FROM ('{from}') TO ('{to}')"
            );
            let swapped = self.rig.pool.execute(AssertSqlSafe(swap)).await;
            swapped.context("failed to change the partition of this month")?;
            self.is_full = full;
        }
        // Each round begins with nothing that is still to be written.
        self.rig.checkpoint().await;
        Ok(())
    }

    /// Removes them.
    pub(super) async fn remove(mut self) -> Result<()> {
        self.show(false).await?;
        let remove = format!("DROP TABLE {}", self.full);
        self.rig.pool.execute(AssertSqlSafe(remove)).await?;
        Ok(())
    }
}

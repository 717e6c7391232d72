//! What one notification and one push take in the database, from accepted to delivered: bytes of tables and indexes as they
//! stand afterwards, dead rows included, and of the log that was written for them.
//!
//! It is the volume of what goes well, of the first attempt and in small rows; docs/scale.md reckons with it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use sqlx::PgPool;

use super::Bench;
use super::flat_out::SUBSCRIPTIONS;
use super::stored::{self, STRAGGLERS, Since};
use crate::load::{self, Gate, Load};
use crate::receiver::Receiver;
use crate::report::{Grid, Row, Section, Unit};
use crate::rig::{Lane, Setup, answering};
use crate::sizes::Sizes;
use crate::tell;

const CONNECTIONS: usize = 64;
/// Events that may be accepted and not delivered yet: none has to wait in the database.
const UNDER_WAY: usize = 1_024;
/// Pushes a second: what Swrve takes, so that none has to wait in the database.
const SENDS: u32 = 245;
/// What is handed in first, so that every table is in use.
const BEFORE: u64 = 490;
/// How long the server may take to tell what its processes have counted when they ended.
const COUNTED: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(100);
/// A table that takes less than this many bytes for each does not stand by itself.
const TOLD_APART: f64 = 1.0;

/// Every table with rows, a partition with the table that it is a part of. What was made and is empty takes some pages, too,
/// but none for what is handed in.
const TABLES: &str = "
    SELECT coalesce(pg_partition_root(oid), oid::regclass)::text, pg_table_size(oid), pg_indexes_size(oid)
    FROM pg_class
    WHERE relkind = 'r' AND pg_relation_size(oid) > 0
          AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())";

const LOG: &str = "
    SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8, wal_records::float8, wal_fpi::float8
    FROM pg_stat_wal";

/// What is handed in.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Notification,
    Push,
}

/// Bytes of a table with what belongs to it, and of its indexes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Bytes {
    table: f64,
    indexes: f64,
}

/// Bytes by table, those of its partitions together.
type Tables = BTreeMap<String, Bytes>;

/// What the database has taken up to a moment.
#[derive(Debug)]
struct Volume {
    tables: Tables,
    /// Of the whole server: bytes and records of the log, and pages that are in it as a whole.
    log: [f64; 3],
    /// What was delivered.
    sent: u64,
}

pub(super) fn expected(sizes: &Sizes) -> Duration {
    const BEGINNING: Duration = Duration::from_secs(40);
    BEGINNING + Duration::from_secs(sizes.stored / u64::from(SENDS) + sizes.stored / 2_000)
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("volume");
    let receiver = Receiver::start()?;
    for kind in [Kind::Notification, Kind::Push] {
        tell(format_args!(
            "volume: {} of the kind {}",
            bench.sizes.stored,
            kind.name()
        ));
        let (before, accepted, after) = one_kind(bench, kind, &receiver).await?;
        add(&mut section, kind, accepted, &before, &after);
    }
    bench.rig.restart().await?;
    section.note(format!(
        "{} of each, after a checkpoint: events by POST /events as fast as they are delivered, each of which becomes one \
         notification, pushes at {SENDS} a second. The bodies are small: 321 bytes of an event, 13 of a push. Tables \
         are counted as they stand at the end, with their dead rows and what is free in their pages; what the services write \
         while nothing is handed in is in the log, too.",
        bench.sizes.stored
    ));
    Ok(section)
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Notification => "notification",
            Self::Push => "push",
        }
    }

    /// Those that went well.
    fn sent(self) -> &'static str {
        match self {
            Self::Notification => "notifications WHERE status = 'SENT'",
            Self::Push => "push_notifications WHERE status = 'SENT'",
        }
    }

    fn setup(self) -> Setup {
        match self {
            Self::Notification => Setup::default(),
            Self::Push => Setup::sending(),
        }
    }
}

/// The database before and after, and how many were accepted in between.
async fn one_kind(bench: &Bench<'_>, kind: Kind, receiver: &Receiver) -> Result<(Volume, u64, Volume)> {
    let rig = bench.rig;
    // The first services that start make partitions.
    let lane = Lane::fresh(rig, &answering(receiver, SUBSCRIPTIONS), kind.setup()).await?;
    hand_in(bench, kind, &lane, receiver, BEFORE).await?;
    rig.stop_all().await;
    rig.checkpoint().await;
    let before = Volume::look(&rig.pool, kind).await?;
    let lane = Lane::start(rig, kind.setup()).await?;
    let accepted = hand_in(bench, kind, &lane, receiver, bench.sizes.stored).await?;
    rig.expect_all_alive().await?;
    rig.stop_all().await;
    Ok((before, accepted, Volume::look(&rig.pool, kind).await?))
}

/// Hands in so many; returns how many of them were accepted, when all of those are finished.
async fn hand_in(bench: &Bench<'_>, kind: Kind, lane: &Lane, receiver: &Receiver, count: u64) -> Result<u64> {
    let pool = &bench.rig.pool;
    match kind {
        Kind::Notification => {
            let (since, gate) = (Since::now()?, Gate::new(UNDER_WAY));
            receiver.restart(Some(gate.clone()));
            let target = lane.events(0, SUBSCRIPTIONS, None, Some(gate));
            let load = Load::Exactly {
                connections: CONNECTIONS,
                pushes: count,
            };
            let tally = load::put(load, &target).await?;
            stored::settled(pool, since).await?;
            Ok(tally.accepted_in_all())
        }
        Kind::Push => {
            let length = Duration::from_secs(count / u64::from(SENDS));
            let tally = load::put(Load::evenly(CONNECTIONS, SENDS, length), &lane.pushes()).await?;
            let start = Instant::now();
            while !stored::pushes_are_finished(pool).await? {
                ensure!(
                    start.elapsed() < STRAGGLERS,
                    "pushes are still under way {STRAGGLERS:?} after the last one"
                );
                tokio::time::sleep(POLL).await;
            }
            Ok(tally.accepted_in_all())
        }
    }
}

impl Volume {
    /// No service may be running: what a process of the server has counted is told when it ends.
    async fn look(pool: &PgPool, kind: Kind) -> Result<Self> {
        tokio::time::sleep(COUNTED).await;
        let relations: Vec<(String, i64, i64)> = sqlx::query_as(TABLES).fetch_all(pool).await?;
        let (bytes, records, pages): (f64, f64, f64) = sqlx::query_as(LOG).fetch_one(pool).await?;
        Ok(Self {
            tables: by_table(relations),
            log: [bytes, records, pages],
            sent: stored::count(pool, kind.sent()).await?,
        })
    }
}

fn by_table(relations: Vec<(String, i64, i64)>) -> Tables {
    let mut tables = Tables::new();
    for (name, table, indexes) in relations {
        let sum = tables.entry(name).or_default();
        sum.table += table as f64;
        sum.indexes += indexes as f64;
    }
    tables
}

/// By how much each table has grown for each of `count`, the largest first; those that are hardly to be seen are one, and the
/// last is all of them together.
fn growth(before: &Tables, after: &Tables, count: f64) -> Vec<(String, Bytes)> {
    let (mut lines, mut others, mut all) = (Vec::new(), Bytes::default(), Bytes::default());
    for (name, now) in after {
        let was = before.get(name).copied().unwrap_or_default();
        let grown = Bytes {
            table: (now.table - was.table) / count,
            indexes: (now.indexes - was.indexes) / count,
        };
        all.add(grown);
        if grown.together() < TOLD_APART {
            others.add(grown);
        } else {
            lines.push((name.clone(), grown));
        }
    }
    lines.sort_by(|(_, one), (_, other)| other.together().total_cmp(&one.together()));
    lines.extend([("others".to_owned(), others), ("all tables".to_owned(), all)]);
    lines
}

impl Bytes {
    fn together(self) -> f64 {
        self.table + self.indexes
    }

    fn add(&mut self, more: Self) {
        self.table += more.table;
        self.indexes += more.indexes;
    }
}

fn add(section: &mut Section, kind: Kind, accepted: u64, before: &Volume, after: &Volume) {
    let (name, sent) = (kind.name(), after.sent.saturating_sub(before.sent));
    if sent < accepted {
        section.broken(format!("{name}: {accepted} were accepted, {sent} were delivered"));
    }
    let count = sent as f64;
    let mut grid = Grid::new(format!("one {name}"), "table");
    for (table, bytes) in growth(&before.tables, &after.tables, count) {
        let row = |measure: &str, bytes| Row::new(measure, bytes, Unit::Bytes);
        grid.line(
            table,
            vec![
                row("rows", bytes.table),
                row("indexes", bytes.indexes),
                row("together", bytes.together()),
            ],
        );
    }
    section.grids.push(grid);
    let log = |index: usize| (after.log[index] - before.log[index]) / count;
    section.row(Row::new(format!("log for one {name}"), log(0), Unit::Bytes));
    section.row(Row::new(
        format!("log records for one {name}"),
        log(1),
        Unit::Count,
    ));
    section.row(Row::new(
        format!("whole pages in the log for 1,000 of the kind {name}"),
        log(2) * 1e3,
        Unit::Count,
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(relations: &[(&str, i64, i64)]) -> Tables {
        let owned = |(name, table, indexes): &(&str, i64, i64)| ((*name).to_owned(), *table, *indexes);
        by_table(relations.iter().map(owned).collect())
    }

    fn line(name: &str, table: f64, indexes: f64) -> (String, Bytes) {
        (name.to_owned(), Bytes { table, indexes })
    }

    #[test]
    fn the_partitions_of_a_table_count_together() {
        let found = tables(&[("events", 100, 10), ("leases", 5, 5), ("events", 200, 20)]);
        let expected = [line("events", 300.0, 30.0), line("leases", 5.0, 5.0)];
        assert_eq!(found, Tables::from(expected));
    }

    #[test]
    fn each_table_has_its_share_and_the_last_line_is_their_sum() {
        let before = tables(&[("events", 100, 10), ("leases", 10, 10)]);
        let after = tables(&[
            ("events", 1_100, 110),
            ("leases", 13, 10),
            ("notifications", 3_000, 500),
        ]);
        let expected = [
            line("notifications", 300.0, 50.0),
            line("events", 100.0, 10.0),
            line("others", 0.3, 0.0),
            line("all tables", 400.3, 60.0),
        ];
        let found = growth(&before, &after, 10.0);
        let names =
            |lines: &[(String, Bytes)]| lines.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected));
        for ((_, found), (_, expected)) in found.iter().zip(&expected) {
            assert!((found.table - expected.table).abs() < 1e-9, "{found:?}");
            assert!((found.indexes - expected.indexes).abs() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn a_push_that_was_not_delivered_breaks_the_run() {
        let volume = |sent| Volume {
            tables: Tables::new(),
            log: [0.0; 3],
            sent,
        };
        let mut section = Section::new("volume");
        add(&mut section, Kind::Push, 490, &volume(10), &volume(499));
        assert_eq!(section.broken, ["push: 490 were accepted, 489 were delivered"]);
        let mut section = Section::new("volume");
        add(&mut section, Kind::Push, 490, &volume(0), &volume(490));
        assert_eq!(section.broken, [""; 0]);
    }
}

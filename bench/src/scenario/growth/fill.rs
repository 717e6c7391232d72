//! Millions of waiting rows, inserted by the server itself straight into the partitions of the last two months, oldest
//! first, as if they had come over the last weeks.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::fs::statvfs;
use sqlx::{AssertSqlSafe, Executor as _, PgPool};
use tokio::task::JoinSet;

use super::WAITING;
use crate::report::Unit;
use crate::report::markdown::with_unit;
use crate::rig::Rig;
use crate::tell;

/// Rows of one statement.
const BATCH: u64 = 50_000;
/// As many statements at once.
const WRITERS: usize = 2;
/// What a waiting row of both lanes takes with its indexes, measured; and what the log of the server may grow to.
const BYTES: u64 = 1_400;
const LOG_BYTES: u64 = 6_000_000_000;
/// What must be left of the disk.
const RESERVE_BYTES: u64 = 5_000_000_000;
/// Rows of both lanes that are inserted and vacuumed a second, about.
const PER_SECOND: u64 = 40_000;
/// Over how many days the waiting rows have come.
const DAYS: u64 = 20;

const PUSHES: &str = "
    INSERT INTO {pushes} (id, status, platform, message_prototype_key, push_key, message, created_at)
    SELECT overlay(replace(gen_random_uuid()::text, '-', '') PLACING lpad(to_hex({from_millis} + n * {step} / 1000), 12, '0') || '7' FROM 1)::uuid,
           'PENDING', 'IOS', 'Hello', 'bench-waits-' || ({from} + n), 'Hello client!', to_timestamp(({from_millis} + n * {step} / 1000) / 1000.0)
    FROM generate_series(0::bigint, {rows} - 1) AS n";

/// One event stands for all notifications of a statement; half of them wait for another day.
const NOTIFICATIONS: &str = "
    WITH event AS (
        INSERT INTO {events} (id, event_id, reseller_id, type, body, occurred_at, created_at)
        SELECT id, id::text, 'bench-waits', 'bench.happened',
               '{\"id\":\"' || id || '\",\"type\":\"bench.happened\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"data\":{}}', at, at
        FROM (SELECT overlay(replace(gen_random_uuid()::text, '-', '') PLACING lpad(to_hex({from_millis}), 12, '0') || '7' FROM 1)::uuid AS id,
                     to_timestamp({from_millis} / 1000.0) AS at) AS made
        RETURNING id),
    waiting AS (
        SELECT id, row_number() OVER (ORDER BY reseller_id) - 1 AS number FROM subscriptions WHERE paused_at IS NOT NULL)
    INSERT INTO {notifications} (id, event, subscription_id, reseller_id, event_type, status, reason, next_attempt_at,
                                 payload_bytes, created_at, updated_at)
    SELECT overlay(replace(gen_random_uuid()::text, '-', '') PLACING lpad(to_hex({from_millis} + n * {step} / 1000), 12, '0') || '8' FROM 1)::uuid,
           event.id, waiting.id, 'bench-waits', 'bench.happened', CASE WHEN later THEN 'SCHEDULED' ELSE 'PENDING' END,
           CASE WHEN later THEN 'QUOTA' END,
           CASE WHEN later THEN to_timestamp(({from_millis} + n * {step} / 1000) / 1000.0) END, 384,
           to_timestamp(({from_millis} + n * {step} / 1000) / 1000.0), to_timestamp(({from_millis} + n * {step} / 1000) / 1000.0)
    FROM event, generate_series(0::bigint, {rows} - 1) AS n CROSS JOIN LATERAL (SELECT (n / {subscriptions}) % 2 = 1 AS later) AS half
    JOIN waiting ON waiting.number = n % {subscriptions}";

/// About how long so many rows take.
pub(super) fn expected(rows: u64) -> Duration {
    Duration::from_secs(rows / PER_SECOND)
}

/// Tells how much disk so many rows of `scenario` need, and fails when it is not there; `option` makes them fewer.
pub(in super::super) async fn expect_room(rig: &Rig, scenario: &str, rows: u64, option: &str) -> Result<()> {
    expect_bytes(rig, scenario, rows, BYTES, option).await
}

/// The same of rows that take so many bytes each.
pub(in super::super) async fn expect_bytes(
    rig: &Rig,
    scenario: &str,
    rows: u64,
    bytes: u64,
    option: &str,
) -> Result<()> {
    let needed = rows * bytes + LOG_BYTES.min(rows * bytes);
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let folder: Option<String> = sqlx::query_scalar("SELECT current_setting('data_directory', true)")
        .fetch_one(&rig.pool)
        .await
        .unwrap_or_default();
    // A server elsewhere names a folder that is not here.
    let here = folder.filter(|folder| fs::exists(Path::new(folder).join("PG_VERSION")).unwrap_or(false));
    let Some(folder) = here else {
        tell(format_args!(
            "{scenario}: needs {} of disk where PostgreSQL is",
            gigabytes(needed)
        ));
        return Ok(());
    };
    let disk = statvfs(folder).context("failed to ask how much disk is free")?;
    let free = disk.f_bavail * disk.f_frsize;
    tell(format_args!(
        "{scenario}: needs {} of disk, {} are free",
        gigabytes(needed),
        gigabytes(free)
    ));
    ensure!(
        free >= needed + RESERVE_BYTES,
        "{} of disk are needed for {rows} waiting rows and {} left over; use fewer with {option}",
        gigabytes(needed),
        gigabytes(RESERVE_BYTES)
    );
    Ok(())
}

/// Inserts the waiting rows of each lane with the numbers from `from` to `to`. Returns how long it took, without vacuuming.
pub(in super::super) async fn fill(rig: &Rig, from: u64, to: u64) -> Result<Duration> {
    let start = Instant::now();
    if to <= from {
        return Ok(Duration::ZERO);
    }
    let rows = with_unit((to - from) as f64, Unit::Count);
    tell(format_args!("growth: inserting {rows} rows of each lane"));
    let calendar = Calendar::read(&rig.pool).await?;
    let statements: Vec<String> = spans(from, to, &calendar)
        .iter()
        .flat_map(|span| [PUSHES, NOTIFICATIONS].map(|template| span.statement(template, &calendar)))
        .collect();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let pool = rig.pool.clone();
        let own: Vec<String> = statements.iter().skip(writer).step_by(WRITERS).cloned().collect();
        writers.spawn(async move {
            for statement in own {
                let inserted = pool.execute(AssertSqlSafe(statement)).await;
                inserted.context("failed to insert waiting rows")?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    let took = start.elapsed();
    tell("growth: vacuuming");
    // What autovacuum would have done by itself, had they come at a natural pace.
    rig.pool
        .execute("VACUUM ANALYZE push_notifications, notifications, events")
        .await?;
    rig.checkpoint().await;
    Ok(took)
}

/// The partitions of the last two months, and the times between which rows are made; in milliseconds since 1970.
struct Calendar {
    /// What the names of the partitions end with.
    last_month: String,
    this_month: String,
    month_began: u64,
    /// A while ago, so that ids that are made from now on are greater.
    until: u64,
}

impl Calendar {
    async fn read(pool: &PgPool) -> Result<Self> {
        let (last_month, this_month, month_began, until): (String, String, i64, i64) = sqlx::query_as(
            "SELECT to_char(now() AT TIME ZONE 'UTC' - interval '1 month', '\"_y\"YYYY\"m\"MM'),
                    to_char(now() AT TIME ZONE 'UTC', '\"_y\"YYYY\"m\"MM'),
                    (extract(epoch FROM date_trunc('month', now() AT TIME ZONE 'UTC')) * 1000)::bigint,
                    (extract(epoch FROM now() - interval '1 hour') * 1000)::bigint",
        )
        .fetch_one(pool)
        .await?;
        Ok(Self {
            last_month,
            this_month,
            month_began: month_began.try_into()?,
            until: until.try_into()?,
        })
    }
}

/// Rows of one statement, which go into one partition.
#[derive(Debug, PartialEq)]
struct Span {
    from: u64,
    rows: u64,
    /// When the first one was made.
    from_millis: u64,
    /// Microseconds between two of them.
    step: u64,
}

impl Span {
    fn until_millis(&self) -> u64 {
        self.from_millis + self.rows * self.step / 1_000
    }

    fn statement(&self, template: &str, calendar: &Calendar) -> String {
        let month = if self.from_millis < calendar.month_began {
            &calendar.last_month
        } else {
            &calendar.this_month
        };
        [
            ("{pushes}", format!("push_notifications{month}")),
            ("{events}", format!("events{month}")),
            ("{notifications}", format!("notifications{month}")),
            ("{from_millis}", format!("{}::bigint", self.from_millis)),
            ("{from}", self.from.to_string()),
            ("{step}", self.step.to_string()),
            ("{rows}", self.rows.to_string()),
            ("{subscriptions}", WAITING.to_string()),
        ]
        .iter()
        .fold(template.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        })
    }
}

/// The rows from `from` to `to` at even distances over the last days, none of them of two months.
fn spans(from: u64, to: u64, calendar: &Calendar) -> Vec<Span> {
    let length = DAYS * 86_400_000;
    let step = length * 1_000 / (to - from);
    let began = calendar.until - length;
    let numbers = (from..to).step_by(BATCH as usize);
    numbers
        .map(|number| {
            let mut span = Span {
                from: number,
                rows: BATCH.min(to - number),
                from_millis: began + (number - from) * step / 1_000,
                step,
            };
            let month = calendar.month_began;
            if span.from_millis < month && span.until_millis() >= month {
                span.from_millis = month - 1 - span.rows * step / 1_000;
            }
            span
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(month_began: u64) -> Calendar {
        Calendar {
            last_month: "_last".to_owned(),
            this_month: "_this".to_owned(),
            month_began,
            until: 30 * 86_400_000,
        }
    }

    #[test]
    fn every_row_has_its_number_once() {
        let spans = spans(7, 7 + 2 * BATCH + 5, &calendar(0));
        let rows: Vec<(u64, u64)> = spans.iter().map(|span| (span.from, span.rows)).collect();
        assert_eq!(rows, [(7, BATCH), (7 + BATCH, BATCH), (7 + 2 * BATCH, 5)]);
    }

    #[test]
    fn rows_are_of_the_last_days_and_those_of_a_statement_of_one_month() {
        let calendar = calendar(20 * 86_400_000 + 12_345);
        let spans = spans(0, 1_000_000, &calendar);
        for span in &spans {
            let last = span.until_millis() < calendar.month_began;
            assert!(last || span.from_millis >= calendar.month_began, "{span:?}");
            assert!(span.from_millis >= 9 * 86_400_000, "{span:?}");
            assert!(span.until_millis() <= calendar.until, "{span:?}");
            let table = if last {
                "push_notifications_last"
            } else {
                "push_notifications_this"
            };
            assert!(span.statement(PUSHES, &calendar).contains(table));
        }
        assert!(
            spans
                .iter()
                .any(|span| span.until_millis() < calendar.month_began)
        );
    }

    #[test]
    fn nothing_is_left_to_be_filled_in() {
        let calendar = calendar(0);
        for template in [PUSHES, NOTIFICATIONS] {
            for span in spans(0, 10, &calendar) {
                let statement = span.statement(template, &calendar);
                let names = [
                    "{pushes}",
                    "{events}",
                    "{notifications}",
                    "{from",
                    "{step}",
                    "{rows}",
                    "{subscriptions}",
                ];
                assert!(names.iter().all(|name| !statement.contains(name)), "{statement}");
            }
        }
    }
}

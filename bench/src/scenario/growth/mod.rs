//! Whether millions of waiting rows make anything slower: accepting, promoting, claiming, delivering.

mod fill;
mod store_times;

use std::time::Duration;

use anyhow::Result;

use self::store_times::StoreTimes;
use super::flat_out::{BATCHES, Delivered, SUBSCRIPTIONS, deliver};
use super::rounds::{RATE_KEPT, Seen, TIME_KEPT, loaded, rounds};
use super::{Bench, Floor};
use crate::load::Load;
use crate::receiver::Receiver;
use crate::report::markdown::with_unit;
use crate::report::stats::quantile;
use crate::report::{Grid, Number, Row, Section, Target, Unit};
use crate::rig::{Lane, Setup, Subscriber, answering};
use crate::sizes::Sizes;
use crate::tell;

pub(super) use fill::{expect_bytes, expect_room, fill};

/// Subscriptions whose notifications wait.
pub(super) const WAITING: usize = 100;

/// What was measured at one length of the backlog.
struct Level {
    waiting: u64,
    times: StoreTimes,
    accepted: Vec<Seen>,
    delivered: Vec<Delivered>,
    /// Of both lanes' tables with their indexes, in megabytes.
    size: f64,
}

pub(super) fn expected(sizes: &Sizes) -> Duration {
    /// The store's operations, and the services.
    const BEGINNING: Duration = Duration::from_secs(20);
    let levels = sizes.waiting.len();
    let rows = sizes.waiting.iter().max().copied().unwrap_or_default();
    sizes.all_rounds(2 * levels)
        + BEGINNING * u32::try_from(levels).unwrap_or(u32::MAX)
        + fill::expected(rows)
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let rig = bench.rig;
    let most = bench.sizes.waiting.iter().max().copied().unwrap_or_default();
    expect_room(rig, "growth", most, "--waiting").await?;
    let rates = bench
        .beside(&[Floor::Rows, Floor::EventRows, Floor::Relayed])
        .await?;
    let times = bench.beside(&[Floor::CommitTime]).await?;
    let receiver = Receiver::start()?;
    rig.restart().await?;
    rig.subscribe(&subscribers(&receiver)).await?;
    let mut section = Section::new("growth");
    let (mut levels, mut there) = (Vec::<Level>::new(), 0);
    for waiting in &bench.sizes.waiting {
        // What the store's operations use up comes on top.
        let wanted = (*waiting + store_times::NEEDED).max(there + store_times::NEEDED);
        let took = fill(rig, there, wanted).await?;
        section.note(format!(
            "{} rows of each lane: the last {} were inserted in {:.0} s, and vacuumed.",
            with_unit(*waiting as f64, Unit::Count),
            with_unit((wanted - there) as f64, Unit::Count),
            took.as_secs_f64()
        ));
        there = wanted;
        tell(format_args!("growth, {waiting} waiting: promoting and claiming"));
        let times = store_times::measure(rig).await?;
        if *waiting == 0 {
            rig.restart().await?;
            rig.subscribe(&subscribers(&receiver)).await?;
            there = 0;
        }
        levels.push(level(bench, &receiver, *waiting, times, &mut section).await?);
    }
    add_rows(&mut section, &levels, &rates, &times);
    section.note(format!(
        "waiting are PENDING pushes, and as many notifications of {WAITING} subscriptions that are paused: half of them \
         PENDING, half SCHEDULED for the next days. Promoting takes 249 pushes or 500 notifications, claiming 64, both timed \
         around the calls of the store, the median of 40, with nothing else running and the pause lifted for it. Growth is judged with room for \
         noise: at least 80 % of the first rate, at most 150 % of the first time. With nothing waiting the \
         store's times are those among the {} rows that they use up.",
        with_unit(store_times::NEEDED as f64, Unit::Count)
    ));
    tell("growth: removing the rows");
    rig.restart().await?;
    Ok(section)
}

/// Those that get what is delivered, and after them those whose notifications wait.
pub(super) fn subscribers(receiver: &Receiver) -> Vec<Subscriber> {
    let mut subscribers = answering(receiver, SUBSCRIPTIONS + WAITING);
    for waiting in &mut subscribers[SUBSCRIPTIONS..] {
        waiting.paused = true;
    }
    subscribers
}

async fn level(
    bench: &Bench<'_>,
    receiver: &Receiver,
    waiting: u64,
    times: StoreTimes,
    section: &mut Section,
) -> Result<Level> {
    let rig = bench.rig;
    let size: f64 = sqlx::query_scalar("SELECT pg_database_size(current_database())::float8 / 1e6")
        .fetch_one(&rig.pool)
        .await?;
    let lane = Lane::start(rig, Setup::sending()).await?;
    let pushes = lane.pushes();
    let load = |length| Load::at_once(bench.sizes.connections, length);
    let what = format!("growth, {waiting} waiting, accepting");
    let accepted = rounds(bench, &what, async || loaded(bench, &pushes, load).await).await?;
    let what = format!("growth, {waiting} waiting, delivering");
    let delivered = rounds(bench, &what, async || {
        deliver(bench, &lane, receiver, &BATCHES, section).await
    })
    .await?;
    rig.stop_all().await;
    Ok(Level {
        waiting,
        times,
        accepted,
        delivered,
        size,
    })
}

fn add_rows(section: &mut Section, levels: &[Level], rates: &[Number], times: &[Number]) {
    let mut grid = Grid::new("both lanes running", "waiting in each");
    let mut first: Option<Vec<Row>> = None;
    for level in levels {
        let mut rows = rows(level);
        match &first {
            None => {
                first = Some(rows.clone());
                let floors = rates.iter().chain(times);
                rows[0].beside.extend(floors.cloned());
            }
            Some(first) => {
                rows = rows
                    .into_iter()
                    .zip(first)
                    .map(|(row, first)| judged(row, first.value))
                    .collect();
            }
        }
        grid.line(with_unit(level.waiting as f64, Unit::Count), rows);
    }
    section.grids.push(grid);
}

fn judged(row: Row, first: Option<f64>) -> Row {
    match (row.unit, first) {
        (Unit::PerSecond, Some(first)) => row.target(Target::AtLeast(first * RATE_KEPT)),
        (Unit::Milliseconds, Some(first)) => row.target(Target::AtMost(first * TIME_KEPT)),
        _ => row,
    }
}

fn rows(level: &Level) -> Vec<Row> {
    // Single calls differ so much that their smallest and greatest say nothing.
    let time = |measure: &str, calls: &[f64]| Row::new(measure, quantile(calls, 0.5), Unit::Milliseconds);
    vec![
        Row::of("pushes accepted", Unit::PerSecond, &level.accepted, |round| {
            round.tally.accepted_per_second()
        }),
        Row::of(
            "p99 of the answer",
            Unit::Milliseconds,
            &level.accepted,
            |round| round.tally.quantile_millis(0.99),
        ),
        Row::of(
            "notifications delivered",
            Unit::PerSecond,
            &level.delivered,
            |round| round.per_second,
        ),
        time("promoting pushes", &level.times.promote_pushes),
        time("claiming pushes", &level.times.claim_pushes),
        time("promoting notifications", &level.times.promote_notifications),
        time("claiming notifications", &level.times.claim_notifications),
        Row::new("database", level.size, Unit::Megabytes),
    ]
}

//! Another client's transaction that stays open for minutes and keeps dead rows from being removed: what it does to both lanes
//! while it lasts, and how they get over it.

use std::time::{Duration, Instant};

use anyhow::Result;
use sqlx::{Connection as _, Executor as _, PgConnection};

use super::flat_out::{BATCHES, Delivered, SUBSCRIPTIONS, deliver_for};
use super::rounds::{RATE_KEPT, per_thousand};
use super::stored::{self, Since};
use super::{Bench, Floor};
use crate::load::{self, Load, Tally};
use crate::receiver::{Arrival, Receiver};
use crate::report::stats::quantile;
use crate::report::{Grid, Row, Section, Target, Unit};
use crate::rig::{Lane, Rig, Setup, answering};
use crate::sizes::Sizes;
use crate::tell;

/// Events a second of the part of a stage in which times are taken; as many pushes.
const RATE: u32 = 500;
const CONNECTIONS: usize = 64;
/// The parts of a stage: times at that rate, notifications as many as go, pushes as many as go.
const EVENLY: Duration = Duration::from_secs(10);
const DELIVERING: Duration = Duration::from_secs(8);
const ACCEPTING: Duration = Duration::from_secs(4);
/// What a stage takes with its warm-ups and with what follows each part.
const STAGE: Duration = Duration::from_secs(30);
/// How long the dead rows may take to be removed when the transaction has ended.
const RECOVERY: Duration = Duration::from_secs(150);
/// What is left then of the dead rows, at most.
const RECOVERED: f64 = 0.1;
/// Stages after the end.
const AFTERWARDS: usize = 2;

/// What was seen in one stage.
struct Stage {
    name: String,
    times: Vec<f64>,
    answers: Tally,
    delivered: Delivered,
    accepted: Tally,
    dead: f64,
}

pub(super) fn expected(sizes: &Sizes) -> Duration {
    sizes.hold.max(STAGE) + STAGE * 3 + RECOVERY / 2
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let rig = bench.rig;
    let mut section = Section::new("xmin");
    let floors = bench
        .beside(&[Floor::EventRows, Floor::Rows, Floor::CommitTime])
        .await?;
    let receiver = Receiver::start()?;
    let lane = Lane::fresh(rig, &answering(&receiver, SUBSCRIPTIONS), Setup::sending()).await?;
    let mut stages = vec![stage(bench, &lane, &receiver, "before", &mut section).await?];

    let mut other = PgConnection::connect(&rig.database_url).await?;
    other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
    // From here on nothing that this snapshot could see may be removed.
    other.execute("SELECT pg_current_xact_id()").await?;
    let since = Instant::now();
    for number in 1_u32.. {
        let name = format!("open, half minute {number}");
        stages.push(stage(bench, &lane, &receiver, &name, &mut section).await?);
        if since.elapsed() >= bench.sizes.hold {
            break;
        }
    }
    let held = since.elapsed();
    let most = dead_rows(rig).await?;
    other.execute("COMMIT").await?;
    let ended = Instant::now();
    for number in 1..=AFTERWARDS {
        let name = format!("ended, half minute {number}");
        stages.push(stage(bench, &lane, &receiver, &name, &mut section).await?);
    }
    let recovered = recovery(rig, most, ended).await?;
    other.close().await?;
    rig.restart().await?;
    add_rows(&mut section, &stages, most, recovered);
    section.row(Row::new("held open", held.as_secs_f64(), Unit::Seconds).beside(floors));
    Ok(section)
}

async fn stage(
    bench: &Bench<'_>,
    lane: &Lane,
    receiver: &Receiver,
    name: &str,
    section: &mut Section,
) -> Result<Stage> {
    tell(format_args!("xmin: {name}"));
    let (rig, since) = (bench.rig, Since::now()?);
    receiver.restart(None);
    let (events, pushes) = (lane.events(0, SUBSCRIPTIONS, None, None), lane.pushes());
    let evenly = Load::evenly(CONNECTIONS, RATE, EVENLY);
    let (answers, _) = tokio::try_join!(load::put(evenly, &events), load::put(evenly, &pushes))?;
    stored::settled(&rig.pool, since).await?;
    let times = receiver.arrivals().iter().map(Arrival::millis).collect();
    let delivered = deliver_for(bench, lane, receiver, &BATCHES, DELIVERING, section).await?;
    let accepted = load::put(Load::at_once(bench.sizes.connections, ACCEPTING), &pushes).await?;
    rig.expect_all_alive().await?;
    Ok(Stage {
        name: name.to_owned(),
        times,
        answers,
        delivered,
        accepted,
        dead: dead_rows(rig).await?,
    })
}

/// Rows that no transaction will see again and that are still there, as the server estimates them.
async fn dead_rows(rig: &Rig) -> Result<f64> {
    // What the backends have counted is told to the others after a moment.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let dead = sqlx::query_scalar("SELECT coalesce(sum(n_dead_tup), 0)::float8 FROM pg_stat_user_tables")
        .fetch_one(&rig.pool)
        .await?;
    Ok(dead)
}

/// How long after the end most of the dead rows were gone; `None` when they are not.
async fn recovery(rig: &Rig, most: f64, ended: Instant) -> Result<Option<Duration>> {
    tell("xmin: waiting for the dead rows to be removed");
    loop {
        if dead_rows(rig).await? <= most * RECOVERED {
            return Ok(Some(ended.elapsed()));
        }
        if ended.elapsed() > RECOVERY {
            return Ok(None);
        }
    }
}

fn add_rows(section: &mut Section, stages: &[Stage], most: f64, recovered: Option<Duration>) {
    let mut grid = Grid::new(
        format!("both lanes; times at {RATE} events and {RATE} pushes a second, rates as many as go"),
        "transaction",
    );
    let mut first: Option<(f64, f64)> = None;
    for stage in stages {
        let rates = (stage.delivered.per_second, stage.accepted.accepted_per_second());
        let kept = |rate: f64, row: Row| match first {
            Some(_) => row.target(Target::AtLeast(rate * RATE_KEPT)),
            None => row,
        };
        let (delivered, accepted) = first.unwrap_or_default();
        let cpu = per_thousand(
            stage.delivered.usage.of("PostgreSQL").total(),
            stage.delivered.sent,
        );
        let time = |name: &str, share| Row::new(name, quantile(&stage.times, share), Unit::Milliseconds);
        grid.line(
            stage.name.clone(),
            vec![
                time("p50 to arrival", 0.5),
                time("p99", 0.99),
                time("longest", 1.0),
                Row::new(
                    "p99 of the answer",
                    stage.answers.quantile_millis(0.99),
                    Unit::Milliseconds,
                ),
                kept(delivered, Row::new("delivered", rates.0, Unit::PerSecond)),
                Row::new("CPU of PostgreSQL for 1,000", cpu, Unit::CpuPerThousand),
                kept(accepted, Row::new("pushes accepted", rates.1, Unit::PerSecond)),
                Row::new("dead rows at its end", stage.dead, Unit::Count),
            ],
        );
        first.get_or_insert(rates);
    }
    section.grids.push(grid);
    let seconds = recovered.map_or(f64::NAN, |took| took.as_secs_f64());
    section.row(Row::new(
        "dead rows when the transaction ended",
        most,
        Unit::Count,
    ));
    section.row(
        Row::new(
            "from its end until nine tenths of them were gone",
            seconds,
            Unit::Seconds,
        )
        .target(Target::AtMost(RECOVERY.as_secs_f64())),
    );
    section.note(
        "a stage is 10 s of events and pushes at even distances, 8 s of events as fast as they are delivered, and 4 s of \
         pushes as fast as they are accepted. Rates are judged with room for noise: at least 80 % of those before.",
    );
}

//! Memory and speed with many waiting pushes, beside the same without any.

use std::time::Duration;

use anyhow::Result;
use sqlx::Executor as _;

use super::latency;
use super::store_times::{self, StoreTimes};
use crate::args::Args;
use crate::cpu::{self, Memory};
use crate::load::{self, Load, Tally};
use crate::report::{Row, Section, Target, Unit};
use crate::rig::{Overrides, Rig, Service, Swrve};
use crate::table::with_unit;
use crate::{floor, http, tell};

/// Of the waiting pushes, those that come through `POST /push`.
const THROUGH_HTTP: u64 = 100_000;
/// For how long sends are counted.
const SENDING: Duration = Duration::from_secs(30);
/// What noise may make of a number that is to stay the same.
const RATE_KEPT: f64 = 0.8;
const TIME_KEPT: f64 = 1.5;

/// What was measured at one length of the backlog.
struct Seen {
    waiting: u64,
    closed: Vec<Tally>,
    open: Vec<Tally>,
    sends: f64,
    memory: Vec<(&'static str, Memory)>,
    times: StoreTimes,
}

pub(crate) async fn measure(args: &Args, rig: &Rig) -> Result<Section> {
    tell("backlog: with nothing waiting");
    floor::fill_waiting(&rig.pool, store_times::NEEDED).await?;
    let times = store_times::measure(rig).await?;
    rig.empty().await?;
    let empty = run(args, rig, 0, times).await?;
    rig.empty().await?;

    tell(format_args!("backlog: storing {} waiting pushes", args.backlog));
    let through_http = THROUGH_HTTP.min(args.backlog / 2);
    let straight = args.backlog - through_http;
    let took = floor::fill_waiting(&rig.pool, straight.max(store_times::NEEDED)).await?;
    // What autovacuum would have done by itself, had they come at a natural pace.
    rig.pool.execute("VACUUM ANALYZE push_notifications").await?;
    let times = store_times::measure(rig).await?;
    let (_ingest, target) = rig.ingest(&Overrides::new()).await?;
    let load = Load::Exactly {
        connections: args.connections,
        pushes: through_http,
    };
    let posted = load::put(load, &target).await?;
    rig.stop_all().await;
    tell("backlog: measuring with it");
    let full = run(args, rig, args.backlog, times).await?;

    let mut section = Section::new("backlog");
    add_rows(&mut section, &empty, &full);
    section.note(format!(
        "{straight} of the waiting pushes were inserted straight into the table in {:.1} s, {} came through POST /push at \
         {:.0}/s; then the services were started anew.",
        took.as_secs_f64(),
        posted.accepted,
        posted.accepted_per_second()
    ));
    section.note(
        "promoting takes 249 pushes and claiming 64 at a time, timed around the calls of the store with nothing else \
         running. Growth is judged with room for noise: at least 80 % of the rate, at most 150 % of the time.",
    );
    Ok(section)
}

/// Measures with the whole lane running; ends it afterwards.
async fn run(args: &Args, rig: &Rig, waiting: u64, times: StoreTimes) -> Result<Seen> {
    let none = Overrides::new();
    let swrve = rig.swrve().await?;
    let (ingest, target) = rig.ingest(&none).await?;
    let retry_worker = rig.retry_worker(&none).await?;
    let dispatcher = rig.dispatcher(&swrve, &none).await?;
    let at_once = Load::Closed {
        connections: args.connections,
        warm_up: args.warm_up(),
        measured: args.measured(),
    };
    let (mut closed, mut open) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        closed.push(load::put(at_once, &target).await?);
        open.push(load::put(latency::at_rate(args), &target).await?);
    }
    let sends = sends_per_second(&swrve).await?;
    let mut memory = Vec::new();
    for (name, service) in [
        ("ingest-api", &ingest),
        ("dispatcher", &dispatcher),
        ("retry-worker", &retry_worker),
    ] {
        rig.expect_alive(&service.process).await?;
        memory.extend(memory_of(service).map(|memory| (name, memory)));
    }
    rig.stop_all().await;
    Ok(Seen {
        waiting,
        closed,
        open,
        sends,
        memory,
        times,
    })
}

fn memory_of(service: &Service) -> Option<Memory> {
    cpu::memory_of(service.process.pid)
}

async fn sends_per_second(swrve: &Swrve) -> Result<f64> {
    let received = async || -> Result<u64> {
        let report: swrve_sim::Report = http::get_json(swrve.address, "/report").await?;
        Ok(report.received)
    };
    let before = received().await?;
    let start = tokio::time::Instant::now();
    tokio::time::sleep(SENDING).await;
    let sends = received().await? - before;
    Ok(sends as f64 / start.elapsed().as_secs_f64())
}

fn add_rows(section: &mut Section, empty: &Seen, full: &Seen) {
    let both = (empty, full);
    let rates = |seen: &Seen| seen.closed.iter().map(Tally::accepted_per_second).collect();
    compare(section, "accepted", both, Unit::PerSecond, rates, |before| {
        Target::AtLeast(before * RATE_KEPT)
    });
    let p99 = |seen: &Seen| {
        seen.open
            .iter()
            .map(|tally| tally.quantile_millis(0.99))
            .collect()
    };
    compare(
        section,
        "p99 of the answer at a fixed rate",
        both,
        Unit::Milliseconds,
        p99,
        |_| Target::Under(20.0),
    );
    let errors = |seen: &Seen| {
        let all = seen.closed.iter().chain(&seen.open);
        vec![all.map(Tally::errors).sum::<u64>() as f64]
    };
    compare(section, "not accepted", both, Unit::Count, errors, |_| {
        Target::AtMost(0.0)
    });
    let grown = |before: f64| Target::AtMost(before * TIME_KEPT);
    let promote = |seen: &Seen| seen.times.promote.clone();
    compare(
        section,
        "promoting a portion",
        both,
        Unit::Milliseconds,
        promote,
        grown,
    );
    let claim = |seen: &Seen| seen.times.claim.clone();
    compare(
        section,
        "claiming a batch",
        both,
        Unit::Milliseconds,
        claim,
        grown,
    );
    compare(
        section,
        "sends",
        both,
        Unit::PerSecond,
        |seen| vec![seen.sends],
        |_| Target::AtLeast(245.0),
    );
    for seen in [empty, full] {
        for (name, memory) in &seen.memory {
            let measure = format!("memory of {name}, most ever, {}", waiting(seen));
            section.row(Row::new(measure, memory.peak, Unit::Megabytes).target(Target::AtMost(100.0)));
            let measure = format!("memory of {name}, at the end, {}", waiting(seen));
            section.row(Row::new(measure, memory.resident, Unit::Megabytes));
        }
    }
}

/// One row for each length of the backlog, the median of the rounds; the target of the long one may follow from the
/// short one's value.
fn compare(
    section: &mut Section,
    measure: &str,
    (empty, full): (&Seen, &Seen),
    unit: Unit,
    rounds: impl Fn(&Seen) -> Vec<f64>,
    target: impl Fn(f64) -> Target,
) {
    let row = |seen| Row::median(format!("{measure}, {}", waiting(seen)), &rounds(seen), unit);
    let before = row(empty);
    let target = target(before.value);
    section.row(before);
    section.row(row(full).target(target));
}

fn waiting(seen: &Seen) -> String {
    format!("{} waiting", with_unit(seen.waiting as f64, Unit::Count))
}

//! Accepted pushes per second, when every connection sends its next push as soon as the last is answered.

use std::time::Duration;

use anyhow::Result;

use super::floors::Floors;
use super::stored;
use crate::args::Args;
use crate::load::{self, Load, Tally};
use crate::report::{Row, Section, Target, Unit};
use crate::rig::{Overrides, Rig, Service, overrides};
use crate::{cpu, tell};

/// The largest queue that can be configured: nothing is refused by it within a run.
const NEVER_FULL: &str = "10000000";

/// One set of rounds: its name in the table, what is configured for it, whether pushes are sent meanwhile, and whether
/// the target is meant for it.
struct Variant {
    name: &'static str,
    overrides: Overrides,
    sending: bool,
    target: bool,
}

fn variants() -> [Variant; 3] {
    [
        Variant {
            name: "whole lane running",
            overrides: Overrides::new(),
            sending: true,
            target: true,
        },
        Variant {
            name: "ingest-api alone",
            overrides: Overrides::new(),
            sending: false,
            target: true,
        },
        Variant {
            name: "ingest-api alone, queue never full",
            overrides: overrides([("POSTRIDER__PUSH__QUEUE__CAPACITY", NEVER_FULL)]),
            sending: false,
            target: false,
        },
    ]
}

/// What was seen in one round.
struct Round {
    tally: Tally,
    cpu: CpuShares,
}

/// Microseconds of CPU time for each accepted push.
struct CpuShares {
    ingest: f64,
    /// This process: the load generator.
    load: f64,
    /// Everything on the machine.
    all: f64,
}

pub(crate) async fn measure(args: &Args, rig: &Rig, floors: Option<&Floors>) -> Result<Section> {
    let mut section = Section::new("ingest");
    for variant in variants() {
        rig.empty().await?;
        let rounds = run(args, rig, &variant, &mut section).await?;
        rig.stop_all().await;
        add_rows(&mut section, args, &variant, &rounds, floors);
    }
    section.note(
        "only answers with 202 count. Pushes are sent at 250/s at most, so the queue of 10,000 is full within the warm-up \
         and what follows is stored as PENDING; in the rows \"queue never full\" every push is published as well. The \
         target is read against the other rows.",
    );
    Ok(section)
}

async fn run(args: &Args, rig: &Rig, variant: &Variant, section: &mut Section) -> Result<Vec<Round>> {
    let (ingest, target) = rig.ingest(&variant.overrides).await?;
    let mut others: Vec<Service> = Vec::new();
    if variant.sending {
        let swrve = rig.swrve().await?;
        others.push(rig.retry_worker(&variant.overrides).await?);
        others.push(rig.dispatcher(&swrve, &variant.overrides).await?);
    }
    let (mut rounds, mut accepted) = (Vec::new(), 0);
    for number in 1..=args.rounds {
        tell(format_args!(
            "ingest, {}: round {number} of {}",
            variant.name, args.rounds
        ));
        // The warm-up is a load of its own, so that the CPU time is that of the measured part.
        let warm_up = closed(args.connections, args.warm_up());
        let warmed = load::put(warm_up, &target).await?;
        let before = cpu_times(&ingest);
        let tally = load::put(closed(args.connections, args.measured()), &target).await?;
        let after = cpu_times(&ingest);
        let micros =
            |index: usize| (after[index] - before[index]).as_secs_f64() * 1e6 / tally.accepted.max(1) as f64;
        let cpu = CpuShares {
            ingest: micros(0),
            load: micros(1),
            all: micros(2),
        };
        accepted += [&warmed, &tally]
            .map(|tally| tally.accepted + tally.accepted_unmeasured)
            .iter()
            .sum::<u64>();
        rounds.push(Round { tally, cpu });
        for service in others.iter().chain([&ingest]) {
            rig.expect_alive(&service.process).await?;
        }
    }
    let stored = stored::count(&rig.pool).await?;
    if stored < accepted {
        section.broken.push(format!(
            "{}: {accepted} were accepted, {stored} are stored",
            variant.name
        ));
    }
    if let Some(rows) = ingest.metrics().await?.mean("postrider_ingest_batch_rows") {
        section.note(format!(
            "{}: {rows:.0} pushes per commit on average",
            variant.name
        ));
    }
    Ok(rounds)
}

fn closed(connections: usize, measured: Duration) -> Load {
    Load::Closed {
        connections,
        warm_up: Duration::ZERO,
        measured,
    }
}

fn cpu_times(ingest: &Service) -> [Duration; 3] {
    [
        cpu::time_of(ingest.process.pid),
        cpu::time_of(std::process::id()),
        cpu::time_of_machine(),
    ]
}

fn add_rows(
    section: &mut Section,
    args: &Args,
    variant: &Variant,
    rounds: &[Round],
    floors: Option<&Floors>,
) {
    let name = variant.name;
    let of = |f: &dyn Fn(&Round) -> f64| rounds.iter().map(f).collect::<Vec<_>>();
    let rates = of(&|round| round.tally.accepted_per_second());
    let mut rate = Row::median(
        format!("accepted, {} connections, {name}", args.connections),
        &rates,
        Unit::PerSecond,
    );
    if variant.target {
        rate = rate.target(Target::AtLeast(10_000.0));
    }
    if let Some(floors) = floors {
        rate = rate.floor(floors.of_ingest());
    }
    section.row(rate);
    let errors: u64 = rounds.iter().map(|round| round.tally.errors()).sum();
    section.row(
        Row::new(format!("not accepted, {name}"), errors as f64, Unit::Count).target(Target::AtMost(0.0)),
    );
    for (measure, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let times = of(&|round| round.tally.quantile_millis(quantile));
        section.row(Row::median(
            format!("{measure} of the answer, {name}"),
            &times,
            Unit::Milliseconds,
        ));
    }
    let longest = of(&|round| round.tally.max_millis());
    section.row(Row::median(
        format!("longest answer, {name}"),
        &longest,
        Unit::Milliseconds,
    ));
    for (who, micros) in [
        ("ingest-api", of(&|round| round.cpu.ingest)),
        ("load generator", of(&|round| round.cpu.load)),
        ("whole machine", of(&|round| round.cpu.all)),
    ] {
        section.row(Row::median(
            format!("CPU time per push, {who}, {name}"),
            &micros,
            Unit::CpuMicros,
        ));
    }
    if let Some(round) = rounds.iter().find(|round| round.tally.errors() > 0) {
        section.note(format!("{name}: {}", round.tally.describe_errors()));
    }
}

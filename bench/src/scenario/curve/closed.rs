//! Accepted pushes per second, when every connection sends its next push as soon as the last is answered.

use anyhow::Result;

use super::super::rounds::{Seen, answer_times, cpu_rows, loaded, rounds};
use super::super::{Bench, stored};
use crate::load::Load;
use crate::report::{Grid, Number, Row, Section, Target, Unit};
use crate::rig::{Lane, Overrides, Setup, overrides};

/// What ingest-api is to reach.
const WANTED: f64 = 20_000.0;
/// The largest queue that can be configured: nothing is refused by it within a run.
const NEVER_FULL: &str = "10000000";
pub(super) const VARIANTS: usize = 3;

/// What runs beside ingest-api, and what is configured.
struct Variant {
    name: &'static str,
    overrides: Overrides,
    /// Whether pushes are sent meanwhile.
    sending: bool,
    /// Whether the target is meant for it.
    wanted: bool,
}

fn variants() -> [Variant; VARIANTS] {
    [
        Variant {
            name: "the whole lane",
            overrides: Overrides::new(),
            sending: true,
            wanted: true,
        },
        Variant {
            name: "ingest-api alone",
            overrides: Overrides::new(),
            sending: false,
            wanted: true,
        },
        Variant {
            name: "ingest-api alone, queue never full",
            overrides: overrides([("POSTRIDER__PUSH__QUEUE__CAPACITY", NEVER_FULL)]),
            sending: false,
            wanted: false,
        },
    ]
}

pub(super) async fn measure(bench: &Bench<'_>, floors: &[Number], section: &mut Section) -> Result<()> {
    let connections = bench.sizes.connections;
    let mut grid = Grid::new(
        format!("as fast as they are answered, {connections} connections"),
        "running",
    );
    for variant in variants() {
        let rounds = run(bench, &variant, section).await?;
        bench.rig.restart().await?;
        grid.line(variant.name, rows(&variant, &rounds, floors));
    }
    section.grids.push(grid);
    Ok(())
}

async fn run(bench: &Bench<'_>, variant: &Variant, section: &mut Section) -> Result<Vec<Seen>> {
    let rig = bench.rig;
    let (ingest, target) = if variant.sending {
        let mut lane = Lane::fresh(rig, &[], Setup::sending()).await?;
        (lane.ingest.remove(0), lane.pushes())
    } else {
        rig.restart().await?;
        rig.ingest(&variant.overrides).await?
    };
    let load = |length| Load::at_once(bench.sizes.connections, length);
    let what = format!("curve, {}", variant.name);
    let rounds = rounds(bench, &what, async || loaded(bench, &target, load).await).await?;
    let accepted: u64 = rounds.iter().map(Seen::accepted_in_all).sum();
    let stored = stored::count(&rig.pool, "push_notifications").await?;
    if stored < accepted {
        section.broken(format!(
            "{}: {accepted} were accepted, {stored} are stored",
            variant.name
        ));
    }
    if let Some(rows) = ingest.metrics().await?.mean("postrider_ingest_batch_rows") {
        section.note(format!(
            "{}: {rows:.0} pushes per commit on average.",
            variant.name
        ));
    }
    Ok(rounds)
}

fn rows(variant: &Variant, rounds: &[Seen], floors: &[Number]) -> Vec<Row> {
    let mut rate = Row::of("accepted", Unit::PerSecond, rounds, |round| {
        round.tally.accepted_per_second()
    });
    if variant.wanted {
        rate = rate.target(Target::AtLeast(WANTED));
    }
    let errors: u64 = rounds.iter().map(|round| round.tally.errors()).sum();
    let mut rows = vec![
        rate.beside(floors.iter().cloned()),
        Row::count("not accepted", errors).target(Target::AtMost(0.0)),
    ];
    rows.extend(answer_times(rounds));
    rows.extend(cpu_rows(
        rounds,
        |round| &round.usage,
        |round| round.tally.accepted,
    ));
    rows.push(Row::of("load generator", Unit::CpuPerThousand, rounds, |round| {
        round.cpu_of("load generator")
    }));
    rows
}

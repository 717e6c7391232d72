//! The times of the answers when pushes come at even distances, whatever happens to those before: steps up to saturation,
//! and the first ones past it.

use std::time::Duration;

use anyhow::Result;

use super::super::Bench;
use super::super::rounds::{Seen, answer_times, loaded, rounds};
use crate::load::Load;
use crate::report::markdown::with_unit;
use crate::report::stats::{Step, knee};
use crate::report::{Grid, Number, Row, Section, Target, Unit};
use crate::rig::{Lane, Setup};
use crate::tell;

/// Enough that a push finds a free connection even while others wait for a slow commit.
const CONNECTIONS: usize = 256;
/// The p99 that is promised, and at which rate.
const PROMISED: f64 = 20.0;
const PROMISED_AT: u32 = 5_000;
/// How long what is due may wait for a connection at the end of a step.
const PATIENCE: Duration = Duration::from_secs(2);
/// Steps that cannot be kept up with before the curve ends.
const PAST_SATURATION: usize = 2;

pub(super) async fn measure(bench: &Bench<'_>, floors: Vec<Number>, section: &mut Section) -> Result<()> {
    let mut grid = Grid::new("at even distances, the whole lane running", "offered");
    let mut steps: Vec<Step> = Vec::new();
    for rate in &bench.sizes.push_rates {
        let rounds = run(bench, *rate).await?;
        let step = Step::of(
            *rate,
            &rounds,
            |round| round.tally.answered_per_second(),
            |round| round.tally.quantile_millis(0.99),
        );
        steps.push(step);
        grid.line(with_unit(f64::from(*rate), Unit::PerSecond), rows(*rate, &rounds));
        if steps.iter().filter(|step| !step.keeps_up()).count() >= PAST_SATURATION {
            tell("curve: past saturation");
            break;
        }
    }
    section.grids.push(grid);
    let most = knee(&steps, PROMISED).map_or(f64::NAN, |step| step.offered);
    section.row(
        Row::new(
            format!("highest step with all accepted and a p99 of at most {PROMISED:.0} ms"),
            most,
            Unit::PerSecond,
        )
        .target(Target::AtLeast(f64::from(PROMISED_AT)))
        .beside(floors),
    );
    section.note(format!(
        "steps: each push is timed from the moment when it was due until its answer has arrived, waiting for a free one of \
         {CONNECTIONS} connections included; what is not sent {PATIENCE:?} after the end of a step counts with the time that \
         it has waited. Accepted are the answers that came within the step. Each step begins with empty tables.",
    ));
    Ok(())
}

async fn run(bench: &Bench<'_>, rate: u32) -> Result<Vec<Seen>> {
    let target = Lane::fresh(bench.rig, &[], Setup::sending()).await?.pushes();
    let load = |length| Load::Open {
        connections: CONNECTIONS,
        rate,
        measured: length,
        patience: PATIENCE,
    };
    let what = format!("curve, {rate} a second");
    rounds(bench, &what, async || loaded(bench, &target, load).await).await
}

fn rows(rate: u32, rounds: &[Seen]) -> Vec<Row> {
    let sum = |of: &dyn Fn(&Seen) -> u64| rounds.iter().map(of).sum::<u64>();
    let mut rows = vec![
        Row::of("accepted", Unit::PerSecond, rounds, |round| {
            round.tally.answered_per_second()
        }),
        Row::count("refused", sum(&|round| round.tally.errors())),
        Row::count("not sent", sum(&|round| round.tally.unsent)),
    ];
    rows.extend(answer_times(rounds).into_iter().map(|row| {
        let promised = rate == PROMISED_AT && row.measure == "p99";
        if promised {
            row.target(Target::Under(PROMISED))
        } else {
            row
        }
    }));
    rows
}

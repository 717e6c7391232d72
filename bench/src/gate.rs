//! The program of the checkout beside that of an earlier revision: both on the same servers, in rounds that take turns, so that
//! whatever the machine does meanwhile happens to both; and what got worse beyond the spread of the rounds.
//!
//! This harness measures both, so that a change of the harness is no change of the numbers. It builds nothing: scripts/bench does.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use domain::clock::{Clock as _, SystemClock};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{GateArgs, SizeArgs};
use crate::floors::Floors;
use crate::machine::Machine;
use crate::receiver::Receiver;
use crate::report::compare::{Comparison, compare};
use crate::report::{Build, Report, Section, VERSION, results};
use crate::rig::{Place, Rig};
use crate::run::{INTERRUPTED, clock, options};
use crate::scenario::{Bench, turn};
use crate::sizes::Sizes;
use crate::{print, tell};

/// How uncertain a number without rounds is: those of the gate are counts of what must not happen.
const NOISE: f64 = 0.0;

/// One of the two programs.
struct Side {
    name: &'static str,
    rig: Rig,
    build: Build,
}

/// Compares the two programs that `args` names.
pub(crate) async fn run(args: &GateArgs) -> Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let sizes = sizes(args);
    let before = rig(args, &args.before).await?;
    let after = match rig(args, &args.place.postrider).await {
        Ok(rig) => rig,
        Err(error) => {
            before.close().await?;
            return Err(error);
        }
    };
    let sides = [
        Side {
            name: "before",
            build: Build {
                revision: args.revision.clone(),
                changed: false,
                ..results::build_of(&before.program)
            },
            rig: before,
        },
        Side {
            name: "after",
            build: results::build_of(&after.program),
            rig: after,
        },
    ];
    let measured = tokio::select! {
        measured = Box::pin(measure(&sizes, &sides)) => Some(measured),
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
    };
    let [before, after] = sides;
    let closed = (before.rig.close().await, after.rig.close().await);
    let Some(measured) = measured else {
        tell("interrupted");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let [before, after] = measured?;
    closed.0.and(closed.1).context("failed to clean up")?;
    for report in [&before, &after] {
        let files = results::write(&args.place.results, report)?;
        tell(format_args!(
            "written to {} and {}",
            files[0].display(),
            files[1].display()
        ));
    }
    let comparison = compare(&before, &after, NOISE);
    print(&comparison.markdown());
    let objections = objections(&comparison, &before, &after);
    for objection in &objections {
        tell(objection);
    }
    Ok(if objections.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Rounds as short as those of `--quick`, and more of them.
fn sizes(args: &GateArgs) -> Sizes {
    Sizes::from(&SizeArgs {
        quick: true,
        rounds: Some(args.rounds),
        ..SizeArgs::default()
    })
}

/// About how long all turns of both take.
fn expected(sizes: &Sizes) -> Duration {
    turn::expected(sizes) * sizes.rounds * 2
}

async fn rig(args: &GateArgs, program: &Path) -> Result<Rig> {
    Rig::new(Place {
        database_url: args.place.database_url.as_ref(),
        amqp_url: args.place.amqp_url.as_ref(),
        postrider: program,
    })
    .await
}

async fn measure(sizes: &Sizes, sides: &[Side; 2]) -> Result<[Report; 2]> {
    let start = Instant::now();
    let [mut before, mut after] = [Report::default(), Report::default()];
    before.started = results::rfc3339(SystemClock.now());
    // This takes two seconds. So the reports have different names, also those of one program beside itself.
    let machine = Machine::look(&sides[0].rig).await?;
    after.started = results::rfc3339(SystemClock.now());
    if machine.disturbed {
        tell("WARNING: other work takes a part of the machine: the numbers are disturbed");
    }
    for side in sides {
        let prepared = side.rig.prepare().await;
        prepared.with_context(|| format!("the program {} cannot be measured", side.name))?;
    }
    tell(format_args!("about {} min for all of it", clock(expected(sizes))));
    let sections = turns(sizes, sides).await?;
    let mut reports = [before, after];
    for ((report, side), section) in reports.iter_mut().zip(sides).zip(sections) {
        report.version = VERSION;
        report.seconds = start.elapsed().as_secs_f64().round();
        report.build = side.build.clone();
        report.machine = machine.clone();
        report.options = options(sizes);
        report.sections.push(section);
    }
    Ok(reports)
}

/// The rounds of both, one after the other.
async fn turns(sizes: &Sizes, sides: &[Side; 2]) -> Result<[Section; 2]> {
    let (receiver, floors) = (Receiver::start()?, Floors::new(sizes.connections));
    let mut sections = [Section::new("gate"), Section::new("gate")];
    let mut taken = [Vec::new(), Vec::new()];
    for round in 1..=sizes.rounds {
        for (index, side) in sides.iter().enumerate() {
            let start = Instant::now();
            tell(format_args!(
                "gate: round {round} of {}, {}",
                sizes.rounds, side.name
            ));
            let bench = Bench {
                sizes,
                rig: &side.rig,
                floors: &floors,
            };
            let section = &mut sections[index];
            let turn = Box::pin(turn::take(&bench, &receiver, section)).await;
            taken[index].push(turn.with_context(|| format!("round {round} failed, {}", side.name))?);
            section.seconds += start.elapsed().as_secs_f64().round();
        }
    }
    for (section, turns) in sections.iter_mut().zip(&taken) {
        turn::summarize(turns, sizes.connections, section);
    }
    Ok(sections)
}

/// Why the later program does not pass: what got worse, and what shows that the comparison is worth nothing.
fn objections(comparison: &Comparison, before: &Report, after: &Report) -> Vec<String> {
    let worse = comparison.worse().map(|name| format!("worse: {name}"));
    let broken = |when: &'static str, report: &Report| {
        let reasons = report
            .broken()
            .map(move |reason| format!("broken {when}: {reason}"));
        reasons.collect::<Vec<_>>()
    };
    worse
        .chain(broken("before", before))
        .chain(broken("after", after))
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};
    use crate::report::{Grid, Row, Target, Unit};

    fn report(rates: &[f64], times: &[f64], refused: u64) -> Report {
        let mut grid = Grid::new("delivering", "events by");
        grid.line(
            "POST /events",
            vec![
                Row::median("delivered", rates, Unit::PerSecond),
                Row::median("p99", times, Unit::Milliseconds),
                Row::count("not accepted", refused).target(Target::AtMost(0.0)),
            ],
        );
        let mut section = Section::new("gate");
        section.grids.push(grid);
        Report {
            sections: vec![section],
            ..Report::default()
        }
    }

    fn verdict(before: &Report, after: &Report) -> Vec<String> {
        objections(&compare(before, after, NOISE), before, after)
    }

    #[test]
    fn rounds_that_overlap_and_what_is_better_pass() {
        let before = report(&[100.0, 110.0], &[9.0, 11.0], 0);
        assert_eq!(
            verdict(&before, &report(&[80.0, 101.0], &[10.9, 15.0], 0)),
            [""; 0]
        );
        assert_eq!(
            verdict(&before, &report(&[150.0, 160.0], &[5.0, 6.0], 0)),
            [""; 0]
        );
    }

    #[test]
    fn each_number_that_got_worse_beyond_its_spread_is_named() {
        let before = report(&[100.0, 110.0], &[9.0, 11.0], 0);
        assert_eq!(
            verdict(&before, &report(&[98.0, 99.0], &[5.0, 6.0], 0)),
            ["worse: gate: delivering, events by POST /events: delivered"]
        );
        let mut both = verdict(&before, &report(&[98.0, 99.0], &[11.5, 12.0], 0));
        both.sort();
        assert_eq!(both.len(), 2);
        assert!(both[1].ends_with(": p99"), "{both:?}");
    }

    #[test]
    fn one_refused_request_is_worse_than_none() {
        let none = report(&[100.0, 110.0], &[9.0, 11.0], 0);
        let one = report(&[100.0, 110.0], &[9.0, 11.0], 1);
        assert_eq!(verdict(&none, &one).len(), 1);
        assert_eq!(verdict(&one, &none), [""; 0]);
    }

    #[test]
    fn a_comparison_in_which_something_was_lost_does_not_pass() {
        let (mut before, after) = (report(&[100.0], &[9.0], 0), report(&[100.0], &[9.0], 0));
        before.sections[0].broken("3 events were accepted, 2 have arrived");
        assert_eq!(
            verdict(&before, &after),
            ["broken before: 3 events were accepted, 2 have arrived"]
        );
    }

    #[test]
    fn measuring_takes_less_than_ten_minutes() {
        let args = Args::parse_from(["bench", "gate", "--before", "old", "--revision", "0e55488abc"]);
        let Some(Command::Gate(args)) = &args.command else {
            panic!("gate is a command");
        };
        let expected = expected(&sizes(args));
        assert!(expected < Duration::from_secs(10 * 60), "{expected:?}");
    }
}

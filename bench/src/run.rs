//! One run from start to end: the scenarios in their order, the report, and the removal of everything that was made.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use domain::clock::{Clock as _, SystemClock};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Args;
use crate::floors::Floors;
use crate::machine::Machine;
use crate::report::{Report, VERSION, markdown, results};
use crate::rig::{Place, Rig};
use crate::scenario::{Bench, Scenario};
use crate::sizes::Sizes;
use crate::{print, tell};

/// The exit code of a run that was interrupted, as shells give it.
pub(crate) const INTERRUPTED: u8 = 130;
/// Settings of the services that the caller gave.
const SETTINGS: &str = "POSTRIDER__";
/// Of those, what says where and not how.
const PLACES: [&str; 3] = [
    "POSTRIDER__DATABASE__URL",
    "POSTRIDER__AMQP__URL",
    "POSTRIDER__RESELLER__SECRETS__KEY",
];

/// Tells what there is to measure.
pub(crate) fn list(args: &Args) {
    let sizes = Sizes::from(&args.sizes);
    let mut whole = Duration::ZERO;
    for scenario in chosen(args) {
        let expected = scenario.expected(&sizes);
        whole += expected;
        print(&format!(
            "{:<14}{:>8}  {}",
            scenario.name(),
            clock(expected),
            scenario.about()
        ));
    }
    print(&format!("{:<14}{:>8}  together", "", clock(whole)));
}

/// Measures what `args` asks for. What has been measured is told and kept even when a later scenario fails.
pub(crate) async fn run(args: &Args) -> Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let start = Instant::now();
    let sizes = Sizes::from(&args.sizes);
    let rig = Rig::new(Place {
        database_url: args.place.database_url.as_ref(),
        amqp_url: args.place.amqp_url.as_ref(),
        postrider: &args.place.postrider,
    })
    .await?;
    let mut report = Report {
        version: VERSION,
        started: results::rfc3339(SystemClock.now()),
        build: results::build_of(&rig.program),
        options: options(&sizes),
        ..Report::default()
    };
    let floors = Floors::new(sizes.connections);
    let bench = Bench {
        sizes: &sizes,
        rig: &rig,
        floors: &floors,
    };
    let measured = tokio::select! {
        measured = Box::pin(measure(args, &bench, &mut report)) => Some(measured),
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
    };
    report.seconds = start.elapsed().as_secs_f64().round();
    if let Some(section) = floors.section() {
        report.sections.insert(0, section);
    }
    let closed = rig.close().await;
    if !report.sections.is_empty() {
        print(&markdown::report(&report));
        let files = results::write(&args.place.results, &report)?;
        tell(format_args!(
            "written to {} and {}",
            files[0].display(),
            files[1].display()
        ));
    }
    match measured {
        None => {
            tell("interrupted");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Some(measured) => measured?,
    }
    closed.context("failed to clean up")?;
    Ok(verdict(&report))
}

/// Only what is broken is a failure.
fn verdict(report: &Report) -> ExitCode {
    for (scenario, name, row) in report.missed() {
        let by = row
            .missed_by
            .map_or(String::new(), |by| format!(" by {:.0} %", by * 100.0));
        tell(format_args!("MISS{by}: {scenario}: {name}"));
    }
    let mut broken = report.broken().peekable();
    if broken.peek().is_none() {
        return ExitCode::SUCCESS;
    }
    for reason in broken {
        tell(format_args!("broken: {reason}"));
    }
    ExitCode::FAILURE
}

async fn measure(args: &Args, bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    report.machine = Machine::look(bench.rig).await?;
    let machine = &report.machine;
    if machine.disturbed {
        let percent = machine.others * 100.0;
        tell(format_args!(
            "WARNING: other work takes {percent:.0} % of the machine, load average {}: the numbers are disturbed",
            machine.load
        ));
    }
    bench.rig.prepare().await?;
    let scenarios: Vec<Scenario> = chosen(args).collect();
    let mut left: Duration = scenarios
        .iter()
        .map(|scenario| scenario.expected(bench.sizes))
        .sum();
    tell(format_args!("about {} min for all of it", clock(left)));
    for scenario in scenarios {
        let expected = scenario.expected(bench.sizes);
        let (name, start) = (scenario.name(), Instant::now());
        tell(format_args!(
            "== {name}: about {}, {} left with it",
            clock(expected),
            clock(left)
        ));
        let measured = scenario.measure(bench).await;
        bench.rig.stop_all().await;
        let mut section = measured.with_context(|| format!("{name} failed"))?;
        section.seconds = start.elapsed().as_secs_f64().round();
        tell(format_args!("== {name}: took {}", clock(start.elapsed())));
        if !section.scenario.is_empty() {
            report.sections.push(section);
        }
        left = left.saturating_sub(expected);
    }
    Ok(())
}

fn chosen(args: &Args) -> impl Iterator<Item = Scenario> + '_ {
    Scenario::all().filter(|scenario| args.scenarios.is_empty() || args.scenarios.contains(scenario))
}

/// What decides about numbers: the sizes, and the settings that the caller gave.
pub(crate) fn options(sizes: &Sizes) -> std::collections::BTreeMap<String, String> {
    let mut options = sizes.named();
    let given = std::env::vars().filter(|(name, _)| name.starts_with(SETTINGS));
    options.extend(given.filter(|(name, _)| !PLACES.contains(&name.as_str())));
    options
}

/// Minutes and seconds.
pub(crate) fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

//! One run from start to end: the scenarios in their order, the report, and the removal of everything that was made.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Args, Scenario};
use crate::machine;
use crate::report::{Report, Section};
use crate::rig::Rig;
use crate::scenario::{backlog, dead_letters, floors, ingest, latency, pacing, reseller};
use crate::{table, tell};

/// The exit code of a run that was interrupted, as shells give it.
const INTERRUPTED: u8 = 130;

/// Measures what `args` asks for. What has been measured is printed even when a later scenario fails.
pub(crate) async fn run(args: &Args) -> Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let rig = Rig::new(args).await?;
    let mut report = Report::default();
    let measured = tokio::select! {
        measured = Box::pin(measure(args, &rig, &mut report)) => Some(measured),
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
    };
    let closed = rig.close().await;
    if !report.sections.is_empty() {
        print(&table::markdown(&report));
        if let Some(folder) = &args.json {
            write_json(folder, &report)?;
        }
    }
    match measured {
        None => {
            tell("interrupted");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Some(measured) => measured?,
    }
    closed.context("failed to clean up")?;
    let broken: Vec<_> = report
        .sections
        .iter()
        .flat_map(|section| &section.broken)
        .collect();
    for reason in &broken {
        tell(format_args!("broken: {reason}"));
    }
    Ok(if broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn measure(args: &Args, rig: &Rig, report: &mut Report) -> Result<()> {
    report.machine = machine::describe(rig).await?;
    rig.prepare().await?;
    let compared = args.includes(Scenario::Ingest) || args.includes(Scenario::Latency);
    let mut floors = None;
    if compared || args.includes(Scenario::Floors) {
        let (section, measured) = floors::measure(args, rig).await?;
        report.sections.push(section);
        floors = Some(measured);
    }
    for scenario in [
        Scenario::Ingest,
        Scenario::Latency,
        Scenario::Pacing,
        Scenario::Backlog,
        Scenario::Reseller,
        Scenario::DeadLetters,
    ] {
        if !args.includes(scenario) {
            continue;
        }
        rig.empty().await?;
        let measured: Result<Section> = match scenario {
            Scenario::Floors => continue,
            Scenario::Ingest => Box::pin(ingest::measure(args, rig, floors.as_ref())).await,
            Scenario::Latency => Box::pin(latency::measure(args, rig, floors.as_ref())).await,
            Scenario::Pacing => Box::pin(pacing::measure(args, rig)).await,
            Scenario::Backlog => Box::pin(backlog::measure(args, rig)).await,
            Scenario::Reseller => Box::pin(reseller::measure(args, rig)).await,
            Scenario::DeadLetters => Box::pin(dead_letters::measure(args, rig)).await,
        };
        rig.stop_all().await;
        report.sections.push(measured?);
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the table is the result of the program")]
fn print(table: &str) {
    println!("{table}");
}

fn write_json(folder: &Path, report: &Report) -> Result<()> {
    fs::create_dir_all(folder).context("failed to create the folder for the numbers")?;
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let file = folder.join(format!("{seconds}.json"));
    fs::write(&file, serde_json::to_vec_pretty(report)?).context("failed to write the numbers")?;
    tell(format_args!("numbers written to {}", file.display()));
    Ok(())
}

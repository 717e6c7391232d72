//! The load harness: measures what Postrider reaches on this machine and prints it as tables, each number beside the
//! floor that the machine itself sets, taken in the same run.
//!
//! It measures from outside, as callers and Swrve do: the release binary runs as separate processes against a database
//! and queues of its own, which are removed at the end. It is no test: a target that is missed is printed as a miss, and
//! only a run that is broken (a push lost, a service that dies) fails.

mod args;
mod cpu;
mod echo;
mod epoch;
mod exposition;
mod floor;
mod floors;
mod gate;
mod http;
mod load;
mod machine;
mod receiver;
mod report;
mod rig;
mod run;
mod scenario;
mod sizes;

use std::fs;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;

use crate::args::{Args, Command};
use crate::report::{compare, docs, markdown, results};

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    epoch::begin();
    if let Some(command) = &args.command {
        return obey(command);
    }
    if args.list {
        run::list(&args);
        return Ok(ExitCode::SUCCESS);
    }
    match args.echo_server {
        Some(address) => finish(async { echo::serve(address).await.map(|()| ExitCode::SUCCESS) }),
        None => finish(run::run(&args)),
    }
}

/// Runs `work` to its end.
fn finish(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let ended = runtime.block_on(work);
    // A load generator that was interrupted may still be on its thread.
    runtime.shutdown_background();
    ended
}

/// Everything but `gate` needs no servers, only reports.
fn obey(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Gate(gate) => return finish(gate::run(gate)),
        Command::Compare { before, after, noise } => {
            let (before, after) = (results::read(before)?, results::read(after)?);
            print(&compare::compare(&before, &after, noise / 100.0).markdown());
        }
        Command::Render { report } => print(&markdown::report(&results::read(report)?)),
        Command::Docs { files } => {
            for file in files {
                let text =
                    fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
                let folder = file.parent().context("a document is in a folder")?;
                let filled = docs::fill(&text, |report| results::read(&folder.join(report)))?;
                fs::write(file, filled).with_context(|| format!("failed to write {}", file.display()))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Results go to standard output.
#[expect(clippy::print_stdout, reason = "the numbers are the result of the program")]
fn print(text: &str) {
    println!("{text}");
}

/// Tells the person who waits what is being done.
#[expect(
    clippy::print_stderr,
    reason = "progress is for people; the numbers go to standard output"
)]
fn tell(progress: impl std::fmt::Display) {
    eprintln!("{progress}");
}

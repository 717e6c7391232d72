//! The load harness: measures what Postrider reaches on this machine and prints it as a table, each number beside the
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
mod http;
mod load;
mod machine;
mod receiver;
mod report;
mod rig;
mod run;
mod scenario;
mod table;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Args;

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    epoch::begin();
    let runtime = tokio::runtime::Runtime::new()?;
    let ended = match args.echo_server {
        Some(address) => runtime.block_on(echo::serve(address)).map(|()| ExitCode::SUCCESS),
        None => runtime.block_on(run::run(&args)),
    };
    // A load generator that was interrupted may still be on its thread.
    runtime.shutdown_background();
    ended
}

/// Tells the person who waits what is being done.
#[expect(
    clippy::print_stderr,
    reason = "progress is for people; the table goes to standard output"
)]
fn tell(progress: impl std::fmt::Display) {
    eprintln!("{progress}");
}

//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Runs all of Postrider on this host with traffic, lets things go wrong at random, and judges what became of every id.
#[derive(Debug, Clone, Parser)]
#[command(name = "chaos", version)]
pub struct Args {
    /// From which the faults follow; a random one when absent.
    #[arg(long)]
    pub seed: Option<u64>,
    /// For how many seconds faults come, in each round.
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    /// How many rounds, each with everything new and a seed that follows from the one before.
    #[arg(long, default_value_t = 1)]
    pub rounds: u64,
    /// What a continuous integration can wait for: 20 seconds of faults, and what was queued is not waited for as long.
    #[arg(long)]
    pub short: bool,
    /// Only these kinds of faults, with commas between them; "none" for none at all.
    #[arg(long, value_delimiter = ',')]
    pub faults: Vec<String>,
    /// Prints the plan and ends.
    #[arg(long)]
    pub plan: bool,
    /// Does what this file of a plan says, as a failed run leaves one, instead of drawing one.
    #[arg(long)]
    pub plan_file: Option<PathBuf>,
    /// Runs the seeds of testing/chaos/seeds.txt, one after the other.
    #[arg(long)]
    pub regressions: bool,
    /// How many nodes the broker has.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub broker_nodes: u8,
    /// Pushes in a second; there are a third as many events.
    #[arg(long, default_value_t = 45)]
    pub rate: u32,
    /// Keeps the folder of a run that has passed, too.
    #[arg(long)]
    pub keep: bool,
    /// The binary of the services.
    #[arg(long, env = "POSTRIDER", default_value = "target/debug/postrider")]
    pub postrider: PathBuf,
    /// Below which each run has a folder of its own.
    #[arg(long, default_value = ".dev/chaos")]
    pub folder: PathBuf,
}

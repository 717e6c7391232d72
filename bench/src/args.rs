//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::scenario::Scenario;

/// Measures Postrider, prints the numbers as Markdown, and keeps them in bench/results.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench", args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// What to measure; everything when nothing is named
    pub(crate) scenarios: Vec<Scenario>,
    /// Tells what there is to measure, and how long each takes with these options
    #[arg(long)]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) sizes: SizeArgs,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Serves as the bare HTTP server of the floors instead of measuring
    #[arg(long, hide = true)]
    pub(crate) echo_server: Option<SocketAddr>,
}

/// What is measured, on which servers, and where the numbers go.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlaceArgs {
    /// Where the reports go
    #[arg(long, value_name = "DIR", default_value = "bench/results")]
    pub(crate) results: PathBuf,
    /// The program to measure
    #[arg(long, env = "POSTRIDER_BIN", default_value = "target/release/postrider")]
    pub(crate) postrider: PathBuf,
    /// The PostgreSQL server; a database is created on it and dropped
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// The RabbitMQ server; queues are created on it and deleted
    #[arg(long, env = "AMQP_URL", hide_env_values = true)]
    pub(crate) amqp_url: Option<String>,
}

/// How much is measured. What is not given is as `--quick` or its absence says.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SizeArgs {
    /// Everything in less than 40 minutes instead of 100: fewer and shorter rounds
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measured rounds
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: Option<u32>,
    /// Length of a measured round, in seconds
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: Option<u64>,
    /// Load before each round that is not measured, in seconds
    #[arg(long)]
    pub(crate) warm_up: Option<u64>,
    /// Connections of the closed loops and of the floors
    #[arg(long)]
    pub(crate) connections: Option<usize>,
    /// Pushes a second of the steps of curve
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) push_rates: Option<Vec<u32>>,
    /// Events a second of the steps of reseller
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) event_rates: Option<Vec<u32>>,
    /// Sends of pacing; each takes 4 ms
    #[arg(long, value_parser = clap::value_parser!(u64).range(100..))]
    pub(crate) sends: Option<u64>,
    /// Pushes that each of the 20 callers of callers hands in; a send takes 4 ms
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) each: Option<u64>,
    /// Waiting rows of each lane, in growth and, the second of them, in memory; stored messages of webpush, the most of them
    #[arg(long, value_delimiter = ',')]
    pub(crate) waiting: Option<Vec<u64>>,
    /// Subscriptions of breadth, ten of each reseller
    #[arg(long, value_parser = clap::value_parser!(u32).range(100..=600_000))]
    pub(crate) subscriptions: Option<u32>,
    /// Notifications of breadth that become due at once
    #[arg(long, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) recovering: Option<u64>,
    /// Notifications of one subscription that wait in quota when it is raised
    #[arg(long, value_parser = clap::value_parser!(u64).range(100_000..))]
    pub(crate) in_line: Option<u64>,
    /// How long another transaction is held open in xmin, in seconds
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) hold: Option<u64>,
    /// Dead letters, in dead-letters
    #[arg(long, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) letters: Option<u64>,
    /// Notifications, and pushes, of volume; a send takes 4 ms
    #[arg(long, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) stored: Option<u64>,
}

/// The two programs that `gate` compares.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct GateArgs {
    /// The program of the earlier revision; scripts/bench builds it
    #[arg(long, value_name = "FILE")]
    pub(crate) before: PathBuf,
    /// The commit that it was built from, as its report is to name it
    #[arg(long)]
    pub(crate) revision: String,
    /// Rounds of each; the fewer, the more often their spreads lie apart by accident
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) rounds: u32,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// What can be done instead of measuring scenarios.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Command {
    /// Compares two programs in one sitting, in rounds that take turns; ends with exit code 1 when something got worse
    Gate(GateArgs),
    /// Tells what changed between two reports beyond the spread of their rounds
    Compare {
        before: PathBuf,
        after: PathBuf,
        /// How uncertain a number without rounds is, in percent of itself
        #[arg(long, default_value_t = 10.0)]
        noise: f64,
    },
    /// Prints a report as Markdown
    Render { report: PathBuf },
    /// Writes the tables of documents again from the reports that they name
    Docs {
        #[arg(default_values = ["docs/performance.md", "docs/scale.md"])]
        files: Vec<PathBuf>,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_without_contradictions() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_word_is_a_scenario_or_a_command() {
        let args = Args::parse_from(["bench", "curve", "dead-letters", "--quick"]);
        assert_eq!(args.scenarios, [Scenario::Curve, Scenario::DeadLetters]);
        let args = Args::parse_from(["bench", "compare", "a.json", "b.json"]);
        assert!(matches!(args.command, Some(Command::Compare { .. })));
        let args = Args::parse_from(["bench", "gate", "--before", "old", "--revision", "0e55488abc"]);
        assert!(matches!(&args.command, Some(Command::Gate(gate)) if gate.rounds > 1));
        assert!(Args::try_parse_from(["bench", "unheard-of"]).is_err());
    }
}

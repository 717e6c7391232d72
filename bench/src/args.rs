//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

/// Measures Postrider and prints a Markdown table.
#[derive(Debug, Clone, Parser)]
pub(crate) struct Args {
    /// What to measure; everything when nothing is named
    pub(crate) scenarios: Vec<Scenario>,
    /// Sends of the pacing scenario; each takes 4 ms
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(100..))]
    pub(crate) sends: u64,
    /// Waiting pushes of the backlog scenario
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) backlog: u64,
    /// Letters of the dead-letters scenario
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) letters: u64,
    /// Measured rounds of the ingest, latency and reseller scenarios
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Length of a measured round
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Length of a measured round of the reseller scenario, in seconds
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    sustained: u64,
    /// Load before each round that is not measured, in seconds
    #[arg(long, default_value_t = 2)]
    warm_up: u64,
    /// Connections of the ingest scenario and of the floors
    #[arg(long, default_value_t = 64)]
    pub(crate) connections: usize,
    /// Pushes per second of the latency scenario
    #[arg(long, default_value_t = 5_000)]
    pub(crate) rate: u32,
    /// Also writes the numbers as JSON into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) json: Option<PathBuf>,
    /// The program to measure
    #[arg(long, env = "POSTRIDER_BIN", default_value = "target/release/postrider")]
    pub(crate) postrider: PathBuf,
    /// The PostgreSQL server; a database is created on it and dropped
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// The RabbitMQ server; queues are created on it and deleted
    #[arg(long, env = "AMQP_URL", hide_env_values = true)]
    pub(crate) amqp_url: Option<String>,
    /// Serves as the bare HTTP server of the floors instead of measuring
    #[arg(long, hide = true)]
    pub(crate) echo_server: Option<SocketAddr>,
}

/// A measurement that can be asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// What the machine does without Postrider
    Floors,
    /// Accepted pushes per second, as many as go
    Ingest,
    /// Time to accept a push at a fixed rate
    Latency,
    /// Distance between sends, and the takeover by a standby
    Pacing,
    /// Memory and speed with many waiting pushes
    Backlog,
    /// From POST /events to the endpoints of resellers: how much, how fast, how fair, how exact
    Reseller,
    /// Lists and groups of many dead letters
    DeadLetters,
}

impl Args {
    pub(crate) fn includes(&self, scenario: Scenario) -> bool {
        self.scenarios.is_empty() || self.scenarios.contains(&scenario)
    }

    pub(crate) fn measured(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    pub(crate) fn sustained(&self) -> Duration {
        Duration::from_secs(self.sustained)
    }

    pub(crate) fn warm_up(&self) -> Duration {
        Duration::from_secs(self.warm_up)
    }
}

//! Checks the models within larger bounds than the tests do, and shows them in a browser.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::{Parser, Subcommand, ValueEnum};
use model::catalogue::{Entry, Size, entries, row};

/// Models of the delivery protocol.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Checks models and prints their rows of the table in docs/model.md.
    Check {
        /// Which of them.
        #[arg(long, value_enum, default_value_t = Which::Small)]
        size: Which,
        /// The one of this name.
        #[arg(long)]
        name: Option<String>,
    },
    /// Shows a model in a browser: each state, and what may follow.
    Explore {
        /// Its name, as `check` prints it.
        name: String,
        /// Where to listen.
        #[arg(long, default_value = "localhost:3000")]
        address: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    Small,
    Large,
    All,
}

impl Which {
    fn takes(self, size: Size) -> bool {
        match self {
            Self::Small => size == Size::Small,
            Self::Large => size == Size::Large,
            Self::All => true,
        }
    }
}

fn main() -> anyhow::Result<ExitCode> {
    match Args::parse().command {
        Command::Check { size, name } => {
            let chosen = entries().into_iter().filter(|entry| match &name {
                Some(name) => entry.name == name,
                None => size.takes(entry.size),
            });
            Ok(check(chosen))
        }
        Command::Explore { name, address } => {
            let entry = entries().into_iter().find(|entry| entry.name == name);
            entry
                .with_context(|| format!("there is no model {name:?}"))?
                .explore(&address);
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "this is what it is for")]
fn check(chosen: impl Iterator<Item = Entry>) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for entry in chosen {
        let started = Instant::now();
        match entry.check() {
            Ok(counts) => println!("{}", row(&entry, counts)),
            Err(failure) => {
                println!("{}: {failure}", entry.name);
                code = ExitCode::FAILURE;
            }
        }
        eprintln!("{}: {:.1} s", entry.name, started.elapsed().as_secs_f64());
    }
    code
}

//! `postrider`: every service in one binary, and the tools around them.
//!
//! Results go to standard output, everything else to standard error. It deliberately holds no rule of the product: it calls the
//! libraries and the services' HTTP API.

mod age;
mod api;
mod args;
mod catalogue;
mod commands;
mod completion;
mod confirm;
mod demo;
mod diagnosis;
mod file;
mod help;
mod ingest;
mod operator;
mod output;
mod part;
mod portal;
mod pretty;
mod problem;
mod progress;
mod refusal;
mod shown;
mod signing_secrets;
mod simulator;
mod web;
mod webhooks;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};
use clap_complete::CompleteEnv;
use config::Sources;

use args::{Cli, Command, Tool};
use commands::outcome::{NOT_ALL, NotCome};

fn main() -> ExitCode {
    let command = || help::grouped(Cli::command(), output::help_width());
    CompleteEnv::with_factory(|| completion::with_values(command()))
        .var(completion::VARIABLE)
        .complete();
    let matches = command().try_get_matches();
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match cli {
        Ok(cli) => cli,
        Err(error) => return refusal::tell(error),
    };
    output::colour(cli.color);
    let sources = Sources::of_process(cli.config);
    match cli.command {
        Command::Up => commands::serve::up(&sources),
        Command::Serve(args) => commands::serve::one(&sources, args.service),
        Command::Tool(tool) => finish(run(&sources, *tool)),
    }
}

/// Tools need no more than one thread.
fn run(sources: &Sources, tool: Tool) -> anyhow::Result<ExitCode> {
    lifecycle::crypto::install_default_provider();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(commands::run(sources, tool))
}

fn finish(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(error) => {
            output::error(&error);
            if error.is::<config::Errors>() {
                ExitCode::from(runtime::BAD_CONFIGURATION)
            } else if error.is::<NotCome>() {
                ExitCode::from(NOT_ALL)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

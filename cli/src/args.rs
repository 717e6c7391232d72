//! The command line: commands and what they have in common. Each command's own arguments stand with the command.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands::audit::AuditArgs;
use crate::commands::broker::BrokerCommand;
use crate::commands::cancel::CancelCommand;
use crate::commands::completions::CompletionsArgs;
use crate::commands::config::ConfigCommand;
use crate::commands::dead_letters::DeadLettersCommand;
use crate::commands::event::EventCommand;
use crate::commands::event_types::EventTypesCommand;
use crate::commands::explain::ExplainArgs;
use crate::commands::healthcheck::HealthcheckArgs;
use crate::commands::jobs::JobsCommand;
use crate::commands::keys::KeysCommand;
use crate::commands::migrate::MigrateArgs;
use crate::commands::pauses::{PauseCommand, PausesArgs, ResumeCommand};
use crate::commands::push::PushArgs;
use crate::commands::quotas::QuotasCommand;
use crate::commands::receive::ReceiveArgs;
use crate::commands::rescue::RescueArgs;
use crate::commands::serve::ServeArgs;
use crate::commands::sim::SimCommand;
use crate::commands::status::StatusArgs;
use crate::demo::DemoArgs;

const EXAMPLES: &str = "\
Examples:
  postrider migrate                                        prepare the database
  postrider up                                             run all services in this process
  postrider serve dispatcher                               run one of them
  postrider keys create --name shop --role ingest          make an API key for POST /push and POST /events
  postrider keys create --name acme --role reseller --reseller acme
  postrider push --platform IOS --prototype Hello --push-key 463B3209 --message 'Hello client!'
  postrider push show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider event send --type contact.deleted --reseller acme --data '{\"contact\": {\"id\": \"contact-42\"}}'
  postrider status                                         what is wrong, if anything
  postrider dead-letters groups                            what was given up, by what went wrong
  postrider explain 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d   what became of a push, an event, a notification
  postrider sim swrve --listen 127.0.0.1:8090              a stand-in for Swrve

docs/cli.md has a section for each command.";

const EXIT_CODES: &str = "\
Exit codes:
  0   done; a service: stopped cleanly after SIGTERM or SIGINT
  1   failed; the reason is on standard error
  2   the command line is wrong
  3   `postrider status` found something wrong
  64  the configuration is wrong; all of its errors are on standard error";

/// The durable delivery platform for pushes and events: its services and the tools around them.
///
/// Services and database commands read one configuration: defaults, then the YAML file, then POSTRIDER__… variables, with
/// DATABASE_URL and AMQP_URL for the two servers. `postrider config show` prints what is in effect.
#[derive(Debug, Parser)]
#[command(name = "postrider", version, after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Cli {
    /// YAML file with what differs from the defaults; also from POSTRIDER_CONFIG.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs all services in this process, with one admin listener.
    Up,
    /// Runs one service.
    Serve(ServeArgs),
    #[command(flatten)]
    Tool(Box<Tool>),
}

/// What is no service: it does something and ends.
#[derive(Debug, Subcommand)]
pub(crate) enum Tool {
    /// Brings the schema of the database up to date.
    Migrate(MigrateArgs),
    /// Makes, lists and revokes API keys.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Checks and shows the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Shows what Postrider wants of RabbitMQ, and rebuilds what RabbitMQ has lost.
    #[command(subcommand)]
    Broker(BrokerCommand),
    /// Runs and asks simulators of receivers and of a mail server.
    #[command(subcommand)]
    Sim(SimCommand),
    /// Hands in a push, or shows one.
    Push(PushArgs),
    /// Hands in an event, or shows one with its notifications.
    #[command(subcommand)]
    Event(EventCommand),
    /// Shows and maintains the catalogue of event types.
    #[command(subcommand)]
    EventTypes(EventTypesCommand),
    /// Lists and decides quota requests of resellers, and sets limits of subscriptions.
    #[command(subcommand)]
    Quotas(QuotasCommand),
    /// Receives webhooks: checks signatures, prints what comes, and fails on demand.
    Receive(ReceiveArgs),
    /// Sends real traffic through a running Postrider and shows what became of it.
    Demo(DemoArgs),
    /// Shows how the system is, with what is wrong first and the command that helps.
    Status(StatusArgs),
    /// Tells the story of one push, event, notification or dead letter.
    Explain(ExplainArgs),
    /// Exits 0 when the URL answers with a 2xx status; for containers.
    Healthcheck(HealthcheckArgs),
    /// Finds out what was given up and why, and sends it again or puts it aside.
    #[command(subcommand)]
    DeadLetters(DeadLettersCommand),
    /// Shows and steers bulk work on dead letters.
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// Shows who changed what, when, and why.
    Audit(AuditArgs),
    /// Stops a lane, a subscription, or all of a reseller for a while.
    #[command(
        subcommand,
        after_help = "Examples:\n  postrider pause lane push --note 'Swrve asked us to wait, incident 17'\n  \
            postrider pause subscription 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --note 'endpoint under repair'\n  \
            postrider pause reseller acme --note 'by their request'"
    )]
    Pause(PauseCommand),
    /// Lets go on what is paused.
    #[command(
        subcommand,
        after_help = "Examples:\n  postrider resume lane push\n  \
            postrider resume subscription 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d\n  \
            postrider resume reseller acme --note 'the endpoint is back'"
    )]
    Resume(ResumeCommand),
    /// Lists what is paused, since when and why.
    Pauses(PausesArgs),
    /// Cancels a push or a notification that has not been sent yet.
    #[command(
        subcommand,
        after_help = "Examples:\n  postrider cancel push 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --note 'sent by mistake'\n  \
            postrider cancel notification 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --note 'by their request'"
    )]
    Cancel(CancelCommand),
    /// Rescues at once what was lost.
    Rescue(RescueArgs),
    /// Prints what makes a shell complete this command line.
    Completions(CompletionsArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    const GUIDE: &str = include_str!("../../docs/cli.md");

    /// The commands for whoever is on call: each shows in its help how it is used.
    const ON_CALL: [&str; 11] = [
        "audit",
        "broker",
        "cancel",
        "dead-letters",
        "explain",
        "jobs",
        "pause",
        "pauses",
        "rescue",
        "resume",
        "status",
    ];

    /// Every command that has none below it, as it is typed, with the help after its options and those above it.
    fn leaves() -> Vec<(String, String)> {
        let mut found = Vec::new();
        walk(&Cli::command(), "", "", &mut found);
        found
    }

    fn walk(command: &clap::Command, above: &str, help: &str, found: &mut Vec<(String, String)>) {
        let path = format!("{above} {}", command.get_name()).trim_start().to_owned();
        let own = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let help = format!("{help}\n{own}");
        if command.get_subcommands().next().is_none() || !command.is_subcommand_required_set() {
            found.push((path.clone(), help.clone()));
        }
        for below in command.get_subcommands() {
            // What the program itself says helps nobody below it.
            let inherited = if above.is_empty() { "" } else { &help };
            walk(below, &path, inherited, found);
        }
    }

    /// The guide's section about a command of the first level.
    fn section(name: &str) -> Option<&'static str> {
        let heading = format!("\n## postrider {name}\n");
        let start = GUIDE.find(&heading)? + heading.len();
        let rest = &GUIDE[start..];
        Some(rest.split("\n## ").next().unwrap_or(rest))
    }

    #[test]
    fn the_guide_has_a_section_for_every_command_and_speaks_of_those_below_it() {
        for (path, _) in leaves() {
            let Some(name) = path.split_whitespace().nth(1) else {
                continue;
            };
            let section =
                section(name).unwrap_or_else(|| panic!("docs/cli.md has no section \"## postrider {name}\""));
            assert!(section.contains("```\n"), "{name}: docs/cli.md shows no example");
            assert!(
                section.contains(&path),
                "{path}: docs/cli.md does not speak of it"
            );
        }
    }

    #[test]
    fn the_guide_speaks_of_no_command_that_there_is_not() {
        let command = Cli::command();
        let known: Vec<_> = command.get_subcommands().map(clap::Command::get_name).collect();
        for heading in GUIDE
            .lines()
            .filter_map(|line| line.strip_prefix("## postrider "))
        {
            assert!(known.contains(&heading), "{heading}");
        }
    }

    #[test]
    fn commands_for_whoever_is_on_call_show_how_they_are_used() {
        let leaves = leaves();
        for name in ON_CALL {
            assert!(
                leaves
                    .iter()
                    .any(|(path, _)| path.split_whitespace().nth(1) == Some(name)),
                "{name}"
            );
        }
        let on_call = |path: &str| {
            path.split_whitespace()
                .nth(1)
                .is_some_and(|name| ON_CALL.contains(&name))
        };
        let lacking: Vec<_> = leaves
            .into_iter()
            .filter(|(path, help)| on_call(path) && !help.contains(path.as_str()))
            .map(|(path, _)| path)
            .collect();
        assert_eq!(lacking, [] as [&str; 0], "their --help shows no example");
    }

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}

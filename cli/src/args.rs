//! The command line: commands and what they have in common. Each command's own arguments stand with the command.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands::broker::BrokerCommand;
use crate::commands::config::ConfigCommand;
use crate::commands::event::EventCommand;
use crate::commands::event_types::EventTypesCommand;
use crate::commands::healthcheck::HealthcheckArgs;
use crate::commands::keys::KeysCommand;
use crate::commands::migrate::MigrateArgs;
use crate::commands::push::PushArgs;
use crate::commands::quotas::QuotasCommand;
use crate::commands::receive::ReceiveArgs;
use crate::commands::serve::ServeArgs;
use crate::commands::sim::SimCommand;
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
  postrider sim swrve --listen 127.0.0.1:8090              a stand-in for Swrve";

/// The durable delivery platform for pushes and events: its services and the tools around them.
///
/// Services and database commands read one configuration: defaults, then the YAML file, then POSTRIDER__… variables, with
/// DATABASE_URL and AMQP_URL for the two servers. `postrider config show` prints what is in effect.
#[derive(Debug, Parser)]
#[command(name = "postrider", version, after_help = format!("{EXAMPLES}\n\n{}", bootstrap::EXIT_CODES))]
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
    /// Shows what Postrider wants of RabbitMQ.
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
    /// Exits 0 when the URL answers with a 2xx status; for containers.
    Healthcheck(HealthcheckArgs),
}

//! One file per command.

pub(crate) mod broker;
pub(crate) mod config;
mod database;
pub(crate) mod event;
pub(crate) mod event_types;
pub(crate) mod healthcheck;
pub(crate) mod keys;
pub(crate) mod migrate;
pub(crate) mod push;
pub(crate) mod quotas;
pub(crate) mod receive;
pub(crate) mod serve;
pub(crate) mod sim;

use ::config::Sources;

use crate::args::Tool;
use crate::demo;

/// Runs a tool.
pub(crate) async fn run(sources: &Sources, tool: Tool) -> anyhow::Result<()> {
    match tool {
        Tool::Migrate(args) => migrate::run(sources, &args).await,
        Tool::Keys(command) => keys::run(sources, command).await,
        Tool::Config(command) => config::run(sources, &command),
        Tool::Broker(command) => broker::run(&command),
        Tool::Sim(command) => sim::run(command).await,
        Tool::Push(args) => push::run(args).await,
        Tool::Event(command) => event::run(command).await,
        Tool::EventTypes(command) => event_types::run(sources, command).await,
        Tool::Quotas(command) => quotas::run(sources, command).await,
        Tool::Receive(args) => receive::run(args).await,
        Tool::Demo(args) => demo::run(args).await,
        Tool::Healthcheck(args) => healthcheck::run(&args).await,
    }
}

//! `postrider broker`: what Postrider wants of RabbitMQ. Services declare it themselves; this is for those who look.

use clap::Subcommand;

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum BrokerCommand {
    /// Prints exchanges, queues and bindings for `rabbitmqctl import_definitions`.
    Definitions,
}

/// Does what the command says.
pub(crate) fn run(command: &BrokerCommand) -> anyhow::Result<()> {
    match command {
        BrokerCommand::Definitions => output::result(broker::topology::definitions_json().trim_end())?,
    }
    Ok(())
}

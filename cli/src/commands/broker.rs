//! `postrider broker`: what Postrider wants of RabbitMQ, and giving it back what it has lost. Services declare what they need
//! themselves.

use clap::{Args, Subcommand};
use domain::counted::of;
use serde_json::json;

use crate::operator::Common;
use crate::output::{self, JsonArgs};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  postrider broker definitions > definitions.json
  postrider broker rebuild --note 'the volume was lost'")]
pub(crate) enum BrokerCommand {
    /// Prints exchanges, queues and bindings for `rabbitmqctl import_definitions`.
    Definitions,
    /// Declares everything again and lets all that was queued wait, from where the queues are filled again.
    Rebuild(RebuildArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RebuildArgs {
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

/// Does what the command says.
pub(crate) async fn run(command: BrokerCommand) -> anyhow::Result<()> {
    match command {
        BrokerCommand::Definitions => output::result(broker::topology::definitions_json().trim_end())?,
        BrokerCommand::Rebuild(args) => rebuild(&args).await?,
    }
    Ok(())
}

async fn rebuild(args: &RebuildArgs) -> anyhow::Result<()> {
    let body = json!({"note": args.note});
    args.common
        .act("/broker/rebuild", &body, |document| {
            let count = |name: &str| document[name].as_u64().unwrap_or_default();
            format!(
                "the queues are declared; {} and {} go to them again",
                of(count("pushes"), "push", "pushes"),
                of(count("notifications"), "notification", "notifications")
            )
        })
        .await
}

//! `postrider cancel`: not sending what has not been sent yet.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::operator::Common;
use crate::output::{self, JsonArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum CancelCommand {
    /// A push that waits or is queued.
    Push(CancelArgs),
    /// A notification that waits or is queued: one event for one subscription.
    Notification(CancelArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Its identifier.
    id: Uuid,
    /// Why; kept in the audit log.
    #[arg(long)]
    note: String,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

/// Does what the command says.
pub(crate) async fn run(command: CancelCommand) -> anyhow::Result<()> {
    let (kind, collection, args) = match command {
        CancelCommand::Push(args) => ("push", "pushes", args),
        CancelCommand::Notification(args) => ("notification", "notifications", args),
    };
    let path = format!("/{collection}/{}/cancel", args.id);
    let told = |document: &Value| {
        let previous = document["previous"].as_str().unwrap_or_default();
        format!(
            "{kind} {} was {} and is cancelled",
            args.id,
            output::harmless(previous)
        )
    };
    args.common.act(&path, &json!({"note": args.note}), told).await
}

//! `postrider quota`: how much a subscription may get, and asking for more.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Common, identifier};
use crate::output::{self, Column};
use crate::portal::Portal;
use crate::shown::{self, Shown, ShownColumn};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  postrider quota show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider quota request 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --daily-quota 2000000 --reason 'We take over a registrar.'")]
pub(crate) enum QuotaCommand {
    /// Shows what is used today, what is left, and what was asked for.
    Show {
        /// Of which subscription.
        #[arg(value_parser = identifier)]
        subscription: Uuid,
        #[command(flatten)]
        common: Common,
    },
    /// Asks for another daily quota; an administrator decides.
    Request(RequestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// For which subscription.
    #[arg(value_parser = identifier)]
    subscription: Uuid,
    /// Notifications a day.
    #[arg(long, value_name = "N")]
    daily_quota: u32,
    /// Why, for the administrator who decides.
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    common: Common,
}

const ROWS: [Shown; 7] = [
    ("notifications a day", "/dailyQuota"),
    ("used today", "/usedToday"),
    ("left today", "/remainingToday"),
    ("wait for a coming day", "/scheduled"),
    ("the next day begins", "/resetsAt"),
    ("time zone", "/timeZone"),
    ("requests a second", "/requestsPerSecond"),
];

const REQUESTS: [ShownColumn; 6] = [
    (Column::whole("quota request"), "/id"),
    (Column::whole("asked for"), "/dailyQuota"),
    (Column::whole("status"), "/status"),
    (Column::whole("granted"), "/granted"),
    (Column::prose("note").spare(1), "/note"),
    (Column::whole("made").spare(2), "/createdAt"),
];

/// Does what the command says.
pub(crate) async fn run(command: QuotaCommand) -> anyhow::Result<()> {
    match command {
        QuotaCommand::Show { subscription, common } => show(subscription, &common).await,
        QuotaCommand::Request(args) => request(&args).await,
    }
}

async fn show(subscription: Uuid, common: &Common) -> anyhow::Result<()> {
    let portal = Portal::connect(&common.portal)?;
    let quota: Value = portal
        .get(&format!("/subscriptions/{subscription}/quota"), &())
        .await?;
    if common.json {
        return output::json(&quota);
    }
    output::result(shown::record("quota", &quota, ROWS))?;
    let path = format!("/subscriptions/{subscription}/quota-requests");
    let requests: Value = portal.get(&path, &()).await?;
    if requests["items"] != json!([]) {
        output::result(shown::list(&requests["items"], REQUESTS))?;
    }
    Ok(())
}

async fn request(args: &RequestArgs) -> anyhow::Result<()> {
    let path = format!("/subscriptions/{}/quota-requests", args.subscription);
    let body = json!({"dailyQuota": args.daily_quota, "reason": args.reason});
    let portal = Portal::connect(&args.common.portal)?;
    let request: Value = portal.post(&path, &body).await?;
    if args.common.json {
        return output::json(&request);
    }
    output::result(shown::cell(&request, "/id"))?;
    output::note("it waits for a decision; `postrider quota show` shows it");
    Ok(())
}

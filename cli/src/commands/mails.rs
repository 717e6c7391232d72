//! `postrider mails`: what resellers are told by mail, for those on call.

use chrono::{DateTime, SecondsFormat, Utc};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use domain::counted::of;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::commands::search;
use crate::operator::Common;
use crate::output::{Column, JsonArgs};
use crate::part::Part;
use crate::shown::{self, ShownColumn};

#[derive(Debug, Subcommand)]
pub(crate) enum MailsCommand {
    /// Lists mails: those that wait by when they are due, those that have ended the last one first.
    #[command(
        visible_alias = "ls",
        after_help = "Examples:
  postrider mails list                                  what waits, and why it was not sent
  postrider mails list --status FAILED"
    )]
    List(ListArgs),
    /// Sends the mails that wait at once, and failed ones again.
    #[command(after_help = "Examples:
  postrider mails retry --note 'the mail server is back'
  postrider mails retry --failed-since 2d --note 'the mail server is back'")]
    Retry(RetryArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// In this status.
    #[arg(long, default_value = "PENDING", ignore_case = true,
          value_parser = PossibleValuesParser::new(["PENDING", "SENDING", "SENT", "FAILED"]))]
    status: String,
    /// About this subscription.
    #[arg(long, value_name = "ID")]
    subscription: Option<Uuid>,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// Those too that failed at this time or later, an age such as 2d or a time; not those about exhausted retries, refused and recovered
    /// deliveries, which are gathered in the next one.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age)]
    failed_since: Option<DateTime<Utc>>,
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

const MAILS: [ShownColumn; 8] = [
    (Column::whole("mail").spare(3), "/id"),
    (Column::whole("about"), "/kind"),
    (Column::whole("to"), "/recipient"),
    (Column::whole("reseller").spare(2), "/resellerId"),
    (Column::time("due").spare(1), "/nextAttemptAt"),
    (Column::time("ended").spare(4), "/finishedAt"),
    (Column::whole("attempts"), "/attempts"),
    (Column::prose("last failure"), "/lastError"),
];

/// Does what the command says.
pub(crate) async fn run(command: MailsCommand) -> anyhow::Result<()> {
    match command {
        MailsCommand::List(args) => list(&args).await,
        MailsCommand::Retry(args) => retry(&args).await,
    }
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let query = search::query([
        ("status", Some(args.status.to_uppercase())),
        ("subscription", args.subscription.map(|id| id.to_string())),
    ]);
    let api = args.common.operator.connect()?;
    let pages = args.part.of(&api, "/mails", query);
    let nothing = |_: &Value| format!("no mail is {}", args.status.to_uppercase());
    shown::print_pages(pages, args.common.form(), MAILS, nothing).await?;
    Ok(())
}

async fn retry(args: &RetryArgs) -> anyhow::Result<()> {
    let body = json!({
        "failedSince": args.failed_since.map(|since| since.to_rfc3339_opts(SecondsFormat::Micros, true)),
        "note": args.note,
    });
    let told = |done: &Value| {
        let mails = done["mails"].as_u64().unwrap_or_default();
        format!("{} sent at once", of(mails, "mail is", "mails are"))
    };
    args.common.act("/mails/retry", &body, told).await
}

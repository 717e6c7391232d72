//! `postrider visits`: who is signed in to the console.

use clap::{Args, Subcommand};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use uuid::Uuid;

use crate::operator::{Common, OperatorArgs};
use crate::output::{self, Column};
use crate::shown::{self, ShownColumn};

#[derive(Debug, Subcommand)]
pub(crate) enum VisitsCommand {
    /// Lists the visits that go on, the newest first.
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Ends a visit; its person has to sign in again. Needs a key of an administrator.
    End(EndArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// How many.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Where the previous part ended.
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct EndArgs {
    /// The visit.
    id: Uuid,
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    operator: OperatorArgs,
}

const VISITS: [ShownColumn; 6] = [
    (Column::whole("visit"), "/id"),
    (Column::whole("who"), "/name"),
    (Column::whole("roles"), "/roles"),
    (Column::whole("provider").spare(2), "/issuer"),
    (Column::time("began").spare(1), "/beganAt"),
    (Column::time("last seen"), "/lastSeenAt"),
];

/// Does what the command says.
pub(crate) async fn run(command: VisitsCommand) -> anyhow::Result<()> {
    match command {
        VisitsCommand::List(args) => list(&args).await,
        VisitsCommand::End(args) => end(&args).await,
    }
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let query = [
        ("limit", Some(args.limit.to_string())),
        ("cursor", args.cursor.clone()),
    ];
    let query: Vec<_> = query.into_iter().filter(|(_, value)| value.is_some()).collect();
    let document: Value = args.common.operator.connect()?.get("/visits", &query).await?;
    shown::print(&document, args.common.form(), VISITS, "there is no visit")
}

async fn end(args: &EndArgs) -> anyhow::Result<()> {
    let note = args.note.as_deref().map_or(String::new(), |note| {
        format!("?note={}", utf8_percent_encode(note, NON_ALPHANUMERIC))
    });
    let path = format!("/visits/{}{note}", args.id);
    args.operator.connect()?.delete(&path).await?;
    Ok(output::result(format!("the visit {} is over", args.id))?)
}

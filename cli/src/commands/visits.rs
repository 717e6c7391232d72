//! `postrider visits`: who is signed in to the console.

use anyhow::bail;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::operator::{Common, OperatorArgs};
use crate::output::{self, Column};
use crate::part::Part;
use crate::shown::{self, ShownColumn};

#[derive(Debug, Subcommand)]
pub(crate) enum VisitsCommand {
    /// Lists the visits that go on, the newest first.
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Ends a visit; its person has to sign in again. Needs a key of an administrator.
    End(EndArgs),
    /// Ends every visit of a person who signed in with the provider. Needs a key of an administrator.
    #[command(
        after_help = "Example:\n  postrider visits revoke --person 7f3a@https://id.example --note 'left the house'"
    )]
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The person: SUBJECT or SUBJECT@ISSUER, as the provider calls it, or the actor as `postrider audit` shows it.
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    person: String,
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    operator: OperatorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    part: Part,
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
        VisitsCommand::Revoke(args) => revoke(&args).await,
    }
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let api = args.common.operator.connect()?;
    let pages = args.part.of(&api, "/visits", Map::new());
    let nothing = |_: &Value| "there is no visit".to_owned();
    shown::print_pages(pages, args.common.form(), VISITS, nothing).await?;
    Ok(())
}

async fn end(args: &EndArgs) -> anyhow::Result<()> {
    let path = format!("/visits/{}", args.id);
    let api = args.operator.connect()?;
    api.delete_noted(&path, args.note.as_deref()).await?;
    Ok(output::result(format!("the visit {} is over", args.id))?)
}

async fn revoke(args: &RevokeArgs) -> anyhow::Result<()> {
    let api = args.operator.connect()?;
    let query = [("person", Some(&args.person)), ("note", args.note.as_ref())];
    let request = api.request(Method::DELETE, "/visits").query(&query);
    let document: Value = api.document(request, "/visits").await?;
    let person = output::harmless(&args.person);
    match document["ended"].as_u64() {
        Some(0) | None => {
            bail!("no visit of {person:?} goes on; `postrider visits list` shows those that do")
        }
        Some(1) => output::result(format_args!("ended 1 visit of {person}"))?,
        Some(ended) => output::result(format_args!("ended {ended} visits of {person}"))?,
    }
    Ok(())
}

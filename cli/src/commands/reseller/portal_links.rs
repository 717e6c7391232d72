//! `postrider portal-links`: one-time links that open the dashboard of a reseller, and the visits that they began.

use anyhow::bail;
use chrono::SecondsFormat;
use clap::{ArgGroup, Args, Subcommand};
use domain::clock::{Clock as _, SystemClock};
use domain::counted::of;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::asked::{Asked, asked};
use super::{Common, OPERATORS};
use crate::commands::search;
use crate::operator::OperatorArgs;
use crate::output::{self, Column, JsonArgs};
use crate::part::Part;
use crate::portal::Portal;
use crate::shown::{self, ShownColumn, cell};
use crate::web::path;

/// What a visit can be allowed beside looking.
const CAPABILITIES: [&str; 6] = [
    "bodies",
    "manage",
    "resend",
    "secrets.reveal",
    "secrets.rotate",
    "quota",
];

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  postrider portal-links create --reseller acme
  postrider portal-links create --reseller acme --note 'sees no deliveries, ticket 4711'      for operators
  postrider portal-links create --person anna --capability bodies --capability resend
  postrider portal-links create --person anna --only-look --landing /app/deliveries --time-zone Europe/Riga
  postrider portal-links revoke 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --note 'sent to a list'      for operators
  postrider portal-links visits
  postrider portal-links end 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider portal-links end --person anna")]
pub(crate) enum PortalLinksCommand {
    /// Makes a link that opens the dashboard once; standard output is the link and nothing else.
    Create(Box<CreateArgs>),
    /// Lists the visits to the dashboard that go on, the newest first.
    Visits(VisitsArgs),
    /// Revokes a link that was not used yet; for operators.
    Revoke(RevokeArgs),
    /// Ends visits to the dashboard: one, those of a person, or all; open pages are refused within seconds.
    End(EndArgs),
}

#[derive(Debug, Args)]
pub(crate) struct VisitsArgs {
    /// To the dashboard of this reseller; with a key of the role embedder.
    #[arg(long, value_name = "ID")]
    reseller: Option<String>,
    /// Of this person.
    #[arg(long, value_name = "NAME")]
    person: Option<String>,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The link, by its id: of `create --json`, or on the page Access of the console.
    link: Uuid,
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    operator: OperatorArgs,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true))]
pub(crate) struct EndArgs {
    /// The visit, from `postrider portal-links visits`.
    #[arg(group = "which", conflicts_with = "reseller")]
    visit: Option<Uuid>,
    /// Every visit of this person.
    #[arg(long, value_name = "NAME", group = "which")]
    person: Option<String>,
    /// Every visit to the dashboard of the reseller.
    #[arg(long, group = "which")]
    all: bool,
    /// Whose dashboard; with a key of the reseller it may be left out.
    #[arg(long, value_name = "ID")]
    reseller: Option<String>,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Whose dashboard; with a key of the reseller it may be left out. A key of the role embedder opens any, and one of an operator too, to look and
    /// nothing else.
    #[arg(long, value_name = "ID")]
    reseller: Option<String>,
    /// Who visits, for the records.
    #[arg(long, value_name = "NAME", default_value = "command line")]
    person: String,
    /// What the person is called, for the records; as --person says when it is left out.
    #[arg(long)]
    name: Option<String>,
    /// What the visit may do beside looking; may be repeated. Everything when it is left out.
    #[arg(long = "capability", value_name = "NAME", value_parser = CAPABILITIES)]
    capabilities: Vec<String>,
    /// The visit may look and nothing else.
    #[arg(long, conflicts_with = "capabilities")]
    only_look: bool,
    /// How long the visit lasts, in minutes.
    #[arg(long, value_name = "N", default_value_t = 480, value_parser = clap::value_parser!(u32).range(15..=720))]
    minutes: u32,
    /// For how long the link can be used, in seconds.
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(30..=900))]
    link_seconds: u32,
    /// The page that the visit begins with, under /app.
    #[arg(long, value_name = "PATH")]
    landing: Option<String>,
    /// The origin of the page that may frame the visit, one of portal.embed.origins; without it none may.
    #[arg(long, value_name = "ORIGIN")]
    parent_origin: Option<String>,
    /// Where the person can have another link made, when the visit is over.
    #[arg(long, value_name = "URL")]
    return_url: Option<String>,
    /// The colours of the pages; what the browser prefers when it is left out.
    #[arg(long, value_parser = ["light", "dark"])]
    theme: Option<String>,
    /// The person's language, such as lv-LV. The pages are in English at present.
    #[arg(long, value_name = "TAG")]
    locale: Option<String>,
    /// In which zone times are shown at first, such as Europe/Riga; UTC when it is left out.
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// For operators: why they look at what the reseller sees; kept in the audit log. The visit lasts 60 minutes.
    #[arg(
        long,
        requires = "reseller",
        conflicts_with_all = [
            "person", "name", "capabilities", "only_look", "minutes", "link_seconds", "landing", "parent_origin", "return_url", "theme",
            "locale", "time_zone",
        ],
        help_heading = OPERATORS,
    )]
    note: Option<String>,
    #[command(flatten)]
    common: Common<JsonArgs>,
    #[command(flatten)]
    operator: OperatorArgs,
}

const VISITS: [ShownColumn; 7] = [
    (Column::whole("visit"), "/id"),
    (Column::whole("reseller").spare(4), "/resellerId"),
    (Column::prose("person"), "/person/id"),
    (Column::prose("may").spare(2), "/capabilities"),
    (Column::time("began").spare(3), "/beganAt"),
    (Column::time("last seen"), "/lastSeenAt"),
    (Column::time("ends").spare(1), "/endsAt"),
];

/// Does what the command says.
pub(crate) async fn run(command: PortalLinksCommand) -> anyhow::Result<()> {
    match command {
        PortalLinksCommand::Create(args) => create(&args).await,
        PortalLinksCommand::Visits(args) => visits(args).await,
        PortalLinksCommand::Revoke(args) => revoke(&args).await,
        PortalLinksCommand::End(args) => end(args).await,
    }
}

async fn create(args: &CreateArgs) -> anyhow::Result<()> {
    let (made, minutes) = made(args).await?;
    if args.common.is_json() {
        return output::json(&made);
    }
    output::result(cell(&made, "/url"))?;
    output::note(format_args!(
        "the link works once, until {}; the visit that it opens lasts {minutes} minutes at most",
        cell(&made, "/expiresAt"),
    ));
    Ok(())
}

/// The link, and how long its visit lasts. Operators ask their own API, and say why.
async fn made(args: &CreateArgs) -> anyhow::Result<(Value, String)> {
    let asked = asked(args.note.is_some(), &args.common.portal, &args.operator);
    match (asked, &args.note, &args.reseller) {
        (Asked::Operator, Some(note), Some(reseller)) => {
            let path = path(&["resellers", reseller, "portal-links"]);
            let request = json!({ "note": note });
            let made: Value = args.operator.connect()?.post(&path, &request).await?;
            let minutes = cell(&made, "/visitMinutes");
            Ok((made, minutes))
        }
        (Asked::Operator, ..) => {
            bail!("an operator says whose dashboard, with --reseller, and why, with --note")
        }
        (Asked::Portal, ..) => Ok((made_by_portal(args).await?, args.minutes.to_string())),
    }
}

async fn made_by_portal(args: &CreateArgs) -> anyhow::Result<Value> {
    let capabilities = if args.capabilities.is_empty() && !args.only_look {
        CAPABILITIES.map(str::to_owned).to_vec()
    } else {
        args.capabilities.clone()
    };
    let request = json!({
        "resellerId": args.reseller,
        "person": { "id": args.person, "name": args.name },
        "capabilities": capabilities,
        "linkSeconds": args.link_seconds,
        "visitMinutes": args.minutes,
        "landing": args.landing,
        "parentOrigin": args.parent_origin,
        "returnUrl": args.return_url,
        "theme": args.theme,
        "locale": args.locale,
        "timeZone": args.time_zone,
        // The key that is shown here opens all of it anyhow.
        "authTime": SystemClock.now().to_rfc3339_opts(SecondsFormat::Millis, true),
    });
    Portal::connect(&args.common.portal)?
        .post("/portal-links", &request)
        .await
}

async fn visits(args: VisitsArgs) -> anyhow::Result<()> {
    let query = search::query([("reseller", args.reseller), ("person", args.person)]);
    let portal = Portal::connect(&args.common.portal)?;
    let pages = args.part.of(&portal, "/visits", query);
    let nothing = |_: &Value| "no visit goes on".to_owned();
    shown::print_pages(pages, args.common.form(), VISITS, nothing).await?;
    Ok(())
}

async fn revoke(args: &RevokeArgs) -> anyhow::Result<()> {
    let path = format!("/portal-links/{}", args.link);
    let api = args.operator.connect()?;
    api.delete_noted(&path, args.note.as_deref()).await?;
    Ok(output::result(format_args!(
        "the link {} opens nothing any more",
        args.link
    ))?)
}

async fn end(args: EndArgs) -> anyhow::Result<()> {
    let portal = Portal::connect(&args.common.portal)?;
    if let Some(visit) = args.visit {
        portal.delete(&format!("/visits/{visit}")).await?;
        return if args.common.is_json() {
            output::json(&json!({ "ended": 1 }))
        } else {
            Ok(output::result(format_args!("the visit {visit} is over"))?)
        };
    }
    let query = [("reseller", &args.reseller), ("person", &args.person)];
    let request = portal.request(Method::DELETE, "/visits").query(&query);
    let document: Value = portal.document(request, "/visits").await?;
    if args.common.is_json() {
        return output::json(&document);
    }
    match document["ended"].as_u64().unwrap_or_default() {
        0 => bail!("no such visit goes on; `postrider portal-links visits` shows those that do"),
        ended => Ok(output::result(format_args!(
            "{} over",
            of(ended, "visit is", "visits are")
        ))?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_fit_the_terminal() {
        let visits = json!([
            {"id": "01a1fd84-191a-7334-a6ae-613178d80d71", "resellerId": "acme", "person": {"id": "anna", "name": "Anna Ozola"},
             "capabilities": CAPABILITIES, "beganAt": "2026-11-21T12:00:00.5Z", "lastSeenAt": "2026-11-21T12:31:00Z",
             "endsAt": "2026-11-21T20:00:00.5Z"},
            {"id": "01a1fd84-ba0d-74fc-a5c1-94d557988f4b", "resellerId": "acme", "person": {"id": "command line", "name": "command line"},
             "capabilities": [], "beganAt": "2026-11-21T11:00:00.5Z", "lastSeenAt": "2026-11-21T11:00:00Z",
             "endsAt": "2026-11-21T19:00:00.5Z"},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&visits, VISITS)));
    }
}

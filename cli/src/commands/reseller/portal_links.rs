//! `postrider portal-links`: one-time links that open the dashboard of a reseller.

use chrono::SecondsFormat;
use clap::{Args, Subcommand};
use domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::Common;
use crate::output::{self, JsonArgs};
use crate::portal::Portal;
use crate::shown::cell;

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
  postrider portal-links create --person anna --capability bodies --capability resend")]
pub(crate) enum PortalLinksCommand {
    /// Makes a link that opens the dashboard once; standard output is the link and nothing else.
    Create(CreateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Whose dashboard; with a key of the reseller it may be left out. A key of the role embedder opens any.
    #[arg(long, value_name = "ID")]
    reseller: Option<String>,
    /// Who visits, for the records.
    #[arg(long, value_name = "NAME", default_value = "command line")]
    person: String,
    /// What the visit may do beside looking; may be repeated. Everything when it is left out.
    #[arg(long = "capability", value_name = "NAME", value_parser = CAPABILITIES)]
    capabilities: Vec<String>,
    /// How long the visit lasts, in minutes.
    #[arg(long, value_name = "N", default_value_t = 480, value_parser = clap::value_parser!(u32).range(15..=720))]
    minutes: u32,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

/// Does what the command says.
pub(crate) async fn run(command: PortalLinksCommand) -> anyhow::Result<()> {
    let PortalLinksCommand::Create(args) = command;
    let capabilities = if args.capabilities.is_empty() {
        CAPABILITIES.map(str::to_owned).to_vec()
    } else {
        args.capabilities
    };
    let request = json!({
        "resellerId": args.reseller,
        "person": { "id": args.person },
        "capabilities": capabilities,
        "visitMinutes": args.minutes,
        // The key that is shown here opens all of it anyhow.
        "authTime": SystemClock.now().to_rfc3339_opts(SecondsFormat::Millis, true),
    });
    let made: Value = Portal::connect(&args.common.portal)?
        .post("/portal-links", &request)
        .await?;
    if args.common.is_json() {
        return output::json(&made);
    }
    output::result(cell(&made, "/url"))?;
    output::note(format_args!(
        "the link works once, until {}; the visit that it opens lasts {} minutes at most",
        cell(&made, "/expiresAt"),
        args.minutes
    ));
    Ok(())
}

//! `postrider user-agents`: the user agents of Web Push, and where they are connected.

use chrono::{DateTime, Utc};
use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};

use super::search::{print, query, written};
use crate::operator::Common;
use crate::output::Column;
use crate::part::Part;
use crate::shown::ShownColumn;

/// Which user agents.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider user-agents --state connected
  postrider user-agents --node http://node-1.internal:8085 --since 1h")]
pub(crate) struct UserAgentsArgs {
    /// Lists them, as without it.
    #[arg(hide = true, value_parser = ["list", "ls"])]
    list: Option<String>,
    /// In this state, as their nodes last noted it.
    #[arg(long, ignore_case = true, value_parser = PossibleValuesParser::new(["CONNECTED", "AWAY"]))]
    state: Option<String>,
    /// Connected to this node, which is named by its webpush.connection.routerUrl.
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    node: Option<String>,
    /// Connected last at this time or later; a time, or an age such as 1h.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age)]
    since: Option<DateTime<Utc>>,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    common: Common,
}

const COLUMNS: [ShownColumn; 6] = [
    (Column::whole("user agent"), "/id"),
    (Column::whole("state"), "/state"),
    (Column::whole("node"), "/node"),
    (Column::time("connected last"), "/connectedAt"),
    (Column::whole("channels").spare(1), "/channels"),
    (Column::time("registered").spare(2), "/createdAt"),
];

/// Lists user agents.
pub(crate) async fn run(args: &UserAgentsArgs) -> anyhow::Result<()> {
    let api = args.common.operator.connect()?;
    let asked = query([
        (
            "state",
            args.state.as_ref().map(|state| state.to_ascii_uppercase()),
        ),
        ("node", args.node.clone()),
        ("since", args.since.map(written)),
    ]);
    let pages = args.part.of(&api, "/webpush/user-agents", asked);
    print(pages, args.common.form(), COLUMNS, "user agent").await?;
    Ok(())
}

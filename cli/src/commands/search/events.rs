//! Finding events over the operator API.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::columns::EVENTS;
use super::{Stretch, note_reseller, print, query};
use crate::operator::Common;
use crate::shown;

/// Which events.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider event list --value example.org --newer-than 2d      what was handed in about this domain?
  postrider event list --reseller acme --unmatched              what matched no subscription
  postrider event list --event-type domain.created --newer-than 1h")]
pub(crate) struct EventListArgs {
    /// Whose data has this as a whole value, such as the name of a domain.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    value: Option<String>,
    /// Of this reseller.
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    reseller: Option<String>,
    /// Of this type.
    #[arg(long, alias = "type", value_name = "TYPE", value_parser = NonEmptyStringValueParser::new())]
    event_type: Option<String>,
    /// Only those that matched no subscription when they were accepted.
    #[arg(long)]
    unmatched: bool,
    #[command(flatten)]
    stretch: Stretch,
    #[command(flatten)]
    common: Common,
}

/// Lists events.
pub(crate) async fn events(args: &EventListArgs) -> anyhow::Result<()> {
    let mut query = query([
        ("value", args.value.clone()),
        ("reseller", args.reseller.clone()),
        ("eventType", args.event_type.clone()),
        ("unmatched", args.unmatched.then(|| "true".to_owned())),
    ]);
    args.stretch.add_to(&mut query);
    let api = args.common.operator.connect()?;
    let pages = args.stretch.part.of(&api, "/events", query.clone());
    let document = print(pages, args.common.form(), EVENTS, "event").await?;
    if shown::items(&document["items"]).is_empty() {
        note_reseller(&api, query.get("reseller")).await?;
    }
    Ok(())
}

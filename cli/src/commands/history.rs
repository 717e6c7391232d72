//! `postrider history`: what a lane did in each of the last minutes.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::Value;

use crate::operator::Common;
use crate::output::Column;
use crate::shown::{self, ShownColumn};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider history push
  postrider history reseller --minutes 10")]
pub(crate) struct HistoryArgs {
    /// Which lane.
    #[arg(value_parser = PossibleValuesParser::new(["push", "reseller"]))]
    lane: String,
    /// How many minutes, the present one included.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=60))]
    minutes: u32,
    #[command(flatten)]
    common: Common,
}

const COLUMNS: [ShownColumn; 7] = [
    (Column::time("minute"), "/minute"),
    (Column::whole("accepted"), "/accepted"),
    (Column::whole("delivered"), "/delivered"),
    (Column::whole("failed"), "/failed"),
    (Column::whole("retried"), "/retried"),
    (Column::whole("processes").spare(1), "/processes"),
    (Column::whole("epochs").spare(2), "/epochs"),
];

/// Does what the command says.
pub(crate) async fn run(args: &HistoryArgs) -> anyhow::Result<()> {
    let path = format!("/lanes/{}/history", args.lane);
    let query = [("minutes", args.minutes)];
    let document: Value = args.common.operator.connect()?.get(&path, &query).await?;
    shown::print(
        &document,
        args.common.form(),
        COLUMNS,
        "nothing is known of the last minutes",
    )
}

//! `postrider dead-letters note`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::clock::{Clock as _, SystemClock};
use reqwest::Method;
use serde_json::json;

use crate::age::Age;
use crate::operator::OperatorArgs;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct NoteArgs {
    /// Of this lane.
    #[arg(long, value_parser = PossibleValuesParser::new(["push", "reseller"]))]
    lane: String,
    /// Of this kind of failure, as `groups` shows it.
    #[arg(long)]
    fingerprint: String,
    /// Where the failures were, as `groups` shows it; not given when that is empty.
    #[arg(long)]
    target: Option<String>,
    /// What is known of it.
    #[arg(long)]
    note: Option<String>,
    /// Who looks after it.
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// For how long this holds, such as 2d; for good when not given.
    #[arg(long, value_name = "AGE")]
    holds: Option<Age>,
    #[command(flatten)]
    operator: OperatorArgs,
}

/// Notes what is known of a group.
pub(crate) async fn run(args: &NoteArgs) -> anyhow::Result<()> {
    let until = args.holds.map(|holds| SystemClock.now() + holds.duration());
    let body = json!({
        "lane": args.lane, "fingerprint": args.fingerprint, "target": args.target, "note": args.note,
        "owner": args.owner, "until": until,
    });
    let api = args.operator.connect()?;
    api.tell(Method::PUT, "/dead-letters/groups/note", &body).await?;
    let done = if args.note.is_some() || args.owner.is_some() {
        "noted"
    } else {
        "took the note away"
    };
    output::result(done)?;
    Ok(())
}

//! `postrider dead-letters groups`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::clock::{Clock as _, SystemClock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::filter::{Filter, FilterArgs};
use crate::operator::{Operator, OperatorArgs};
use crate::output;

/// Longest detail in a table, in characters.
const DETAIL_MAX: usize = 60;

#[derive(Debug, Args)]
pub(crate) struct GroupsArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// In this state.
    #[arg(long, default_value = "OPEN", value_parser = PossibleValuesParser::new(["OPEN", "REPLAYED", "DISCARDED", "ALL"]))]
    state: String,
    /// How many groups.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// As JSON, just as the operator API gives it.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    operator: OperatorArgs,
}

#[derive(Serialize)]
struct Query<'a> {
    #[serde(flatten)]
    filter: Filter,
    state: &'a str,
    limit: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Groups {
    items: Vec<Group>,
    total: u64,
    at_least: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    fingerprint: String,
    kind: String,
    target: String,
    count: u64,
    first_seen: String,
    last_seen: String,
    sample: Sample,
}

#[derive(Deserialize)]
struct Sample {
    id: String,
    detail: String,
}

/// Counts dead letters by kind.
pub(crate) async fn run(args: &GroupsArgs) -> anyhow::Result<()> {
    let query = Query {
        filter: args.filter.filter(SystemClock.now()),
        state: &args.state,
        limit: args.limit,
    };
    let document: Value = Operator::new(&args.operator)?
        .read("/dead-letters/groups", &query)
        .await?;
    if args.json {
        return output::json(&document);
    }
    let groups: Groups = serde_json::from_value(document)?;
    if groups.items.is_empty() {
        output::note("no dead letter matches");
        return Ok(());
    }
    output::result(table_of(&groups.items))?;
    let shown: u64 = groups.items.iter().map(|group| group.count).sum();
    let least = if groups.at_least { "at least " } else { "" };
    output::note(format!(
        "{least}{} dead letters, {shown} of them in the groups above",
        groups.total
    ));
    Ok(())
}

fn table_of(groups: &[Group]) -> comfy_table::Table {
    let mut table = output::table([
        "letters",
        "kind",
        "fingerprint",
        "target",
        "first",
        "last",
        "the last one",
    ]);
    for group in groups {
        table.add_row([
            group.count.to_string(),
            group.kind.clone(),
            output::harmless(&group.fingerprint),
            output::harmless(&group.target),
            super::seconds(&group.first_seen),
            super::seconds(&group.last_seen),
            format!(
                "{} {}",
                group.sample.id,
                super::shortened(&group.sample.detail, DETAIL_MAX)
            ),
        ]);
    }
    table
}

//! `postrider dead-letters list`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use comfy_table::ColumnConstraint;
use domain::clock::{Clock as _, SystemClock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::filter::{Filter, FilterArgs};
use crate::operator::{Operator, OperatorArgs, Page};
use crate::output;

/// Longest detail in a table, in characters.
const DETAIL_MAX: usize = 80;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// In this state.
    #[arg(long, default_value = "OPEN", value_parser = PossibleValuesParser::new(["OPEN", "REPLAYED", "DISCARDED", "ALL"]))]
    state: String,
    /// Which come first.
    #[arg(long, default_value = "newest", value_parser = PossibleValuesParser::new(["newest", "oldest"]))]
    order: String,
    /// How many.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Goes on where another list ended, which says how.
    #[arg(long)]
    cursor: Option<String>,
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
    order: &'a str,
    limit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Letter {
    id: String,
    state: String,
    reason: String,
    fingerprint: String,
    target: String,
    detail: String,
    created_at: String,
}

/// Lists dead letters.
pub(crate) async fn run(args: &ListArgs) -> anyhow::Result<()> {
    let query = Query {
        filter: args.filter.filter(SystemClock.now()),
        state: &args.state,
        order: &args.order,
        limit: args.limit,
        cursor: args.cursor.as_deref(),
    };
    let document: Value = Operator::new(&args.operator)?
        .read("/dead-letters", &query)
        .await?;
    if args.json {
        return output::json(&document);
    }
    let page: Page<Letter> = serde_json::from_value(document)?;
    if page.items.is_empty() {
        output::note(if page.next.is_some() {
            "no dead letter among those that were looked at"
        } else {
            "no dead letter matches"
        });
    } else {
        output::result(table_of(&page.items))?;
    }
    if let Some(next) = page.next {
        output::note(format!("there are more: the same again with --cursor {next}"));
    }
    Ok(())
}

fn table_of(letters: &[Letter]) -> comfy_table::Table {
    let mut table = output::table(["id", "written", "reason", "fingerprint", "target", "detail"]);
    for letter in letters {
        let reason = match letter.state.as_str() {
            "OPEN" => letter.reason.clone(),
            state => format!("{}, {state}", letter.reason),
        };
        table.add_row([
            letter.id.clone(),
            super::seconds(&letter.created_at),
            reason,
            output::harmless(&letter.fingerprint),
            output::harmless(&letter.target),
            super::shortened(&letter.detail, DETAIL_MAX),
        ]);
    }
    // An identifier on two lines cannot be copied.
    if let Some(ids) = table.column_mut(0) {
        ids.set_constraint(ColumnConstraint::ContentWidth);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_stands_on_one_line_however_much_there_is_to_tell() {
        let long = |text: &str| text.repeat(40);
        let letter = Letter {
            id: "5f0c9f0e-3a55-4d0a-9d43-0c6c2f7cf2b1".to_owned(),
            state: "DISCARDED".to_owned(),
            reason: "GIVEN_UP".to_owned(),
            fingerprint: long("delivery/"),
            target: long("acme."),
            detail: long("the endpoint failed "),
            created_at: "2026-11-21T12:00:00Z".to_owned(),
        };
        let id = letter.id.clone();
        let table = table_of(&[letter]).to_string();
        assert!(table.contains(&id), "{table}");
    }
}

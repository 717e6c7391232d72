//! `postrider dead-letters timeline`.

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use serde_json::Value;

use crate::operator::Common;
use crate::output::{self, Column, Form, Table};
use crate::shown::{cell, items};

#[derive(Debug, Args)]
pub(crate) struct TimelineArgs {
    /// Of this lane.
    #[arg(long, value_parser = PossibleValuesParser::new(["push", "reseller"]))]
    lane: Option<String>,
    /// Of this kind of failure; `*` at the end stands for anything.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    fingerprint: Option<String>,
    /// Where the failure was, as the list of groups names it.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    target: Option<String>,
    /// In this state.
    #[arg(long, default_value = "ALL", value_parser = PossibleValuesParser::new(["OPEN", "REPLAYED", "DISCARDED", "ALL"]))]
    state: String,
    /// The hours up to now.
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=672))]
    hours: u32,
    /// How many groups.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=300))]
    limit: u32,
    #[command(flatten)]
    common: Common,
}

/// Counts dead letters by the hour.
pub(crate) async fn run(args: &TimelineArgs) -> anyhow::Result<()> {
    let query = [
        ("lane", args.lane.clone()),
        ("fingerprint", args.fingerprint.clone()),
        ("target", args.target.clone()),
        ("state", Some(args.state.clone())),
        ("hours", Some(args.hours.to_string())),
        ("limit", Some(args.limit.to_string())),
    ];
    let api = args.common.operator.connect()?;
    let document: Value = api.get("/dead-letters/timeline", &query).await?;
    let form = args.common.form();
    if form == Form::Json {
        return output::json(&document);
    }
    if items(&document["items"]).is_empty() {
        output::note(format!("no dead letter was written in the last {} h", args.hours));
    }
    form.table(&table_of(&document))
}

fn table_of(document: &Value) -> Table {
    let mut table = output::table([
        Column::whole("dead letters"),
        Column::whole("this hour"),
        Column::whole("fingerprint").name(),
        Column::whole("target").spare(2),
        Column::whole("by the hour").spare(1),
    ]);
    for group in items(&document["items"]) {
        let counts: Vec<u64> = items(&group["counts"]).iter().filter_map(Value::as_u64).collect();
        table.add_row([
            counts.iter().sum::<u64>().to_string(),
            counts.last().copied().unwrap_or_default().to_string(),
            cell(group, "/fingerprint"),
            cell(group, "/target"),
            bars(&counts),
        ]);
    }
    table
}

/// A bar for each number, the highest for the greatest; hours without any are dots.
fn bars(counts: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    let bar = |count: u64| {
        let height = (count * BARS.len() as u64).div_ceil(most);
        let place = usize::try_from(height).unwrap_or_default().checked_sub(1);
        place.and_then(|place| BARS.get(place)).copied().unwrap_or('·')
    };
    counts.iter().copied().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_greatest_hour_has_the_highest_bar_and_an_hour_without_any_has_none() {
        assert_eq!(bars(&[0, 1, 4, 8]), "·▁▄█");
        assert_eq!(bars(&[0, 1]), "·█");
        assert_eq!(bars(&[0, 0]), "··");
        assert_eq!(bars(&[u64::from(u32::MAX), 1]), "█▁");
    }

    #[test]
    fn a_group_tells_its_sum_and_the_present_hour() {
        let document = json!({"items": [{"fingerprint": "swrve/503", "target": "503", "counts": [2, 0, 3]}]});
        let shown = table_of(&document).tsv();
        assert!(shown.ends_with("5\t3\tswrve/503\t503\t▆·█"), "{shown}");
    }
}

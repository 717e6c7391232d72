//! `postrider dead-letters timeline`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::clock::{Clock as _, SystemClock};
use serde_json::Value;

use super::filter::FilterArgs;
use crate::operator::Common;
use crate::output::{self, Column, Form, Table};
use crate::shown::{cell, items};

#[derive(Debug, Args)]
pub(crate) struct TimelineArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// By what: the cause and its place, the place, or whose they are.
    #[arg(long, default_value = "cause", value_parser = PossibleValuesParser::new(["cause", "endpoint", "reseller"]))]
    by: String,
    /// In this state.
    #[arg(long, default_value = "ALL", value_parser = PossibleValuesParser::new(["OPEN", "REPLAYED", "DISCARDED", "ALL"]))]
    state: String,
    /// The hours up to now, or to --until; 24 unless --since or --newer-than says where they begin.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=672),
        conflicts_with_all = ["since", "newer_than"])]
    hours: Option<u32>,
    /// How many groups.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=300))]
    limit: u32,
    #[command(flatten)]
    common: Common,
}

/// Counts dead letters by the hour.
pub(crate) async fn run(args: &TimelineArgs) -> anyhow::Result<()> {
    let api = args.common.operator.connect()?;
    let filter = args.filter.found(&api).await?;
    let mut query = filter.filter(SystemClock.now());
    query.insert("by".to_owned(), args.by.as_str().into());
    query.insert("state".to_owned(), args.state.as_str().into());
    query.insert("limit".to_owned(), args.limit.into());
    if let Some(hours) = args.hours {
        query.insert("hours".to_owned(), hours.into());
    }
    let document: Value = api.get("/dead-letters/timeline", &query).await?;
    let form = args.common.form();
    if form == Form::Json {
        return output::json(&document);
    }
    if items(&document["items"]).is_empty() {
        filter.note_reseller(&api).await?;
        output::note("no dead letter that matches was written in these hours");
    }
    form.table(&table_of(&document, &args.by))?;
    if document["atLeast"] == true {
        output::note("only the newest are counted one by one: the earlier hours may have had more");
    }
    Ok(())
}

fn table_of(document: &Value, by: &str) -> Table {
    // What names a group, and what else tells it from others.
    let (name, more) = match by {
        "endpoint" => (("target", "/target"), None),
        "reseller" => (("reseller", "/resellerId"), None),
        _ => (("fingerprint", "/fingerprint"), Some(("target", "/target"))),
    };
    let mut columns = vec![
        Column::whole("dead letters"),
        Column::whole("last hour"),
        Column::whole(name.0).name(),
    ];
    columns.extend(more.map(|(more, _)| Column::whole(more).spare(2)));
    columns.push(Column::whole("by the hour").spare(1));
    let mut table = output::table(columns);
    for group in items(&document["items"]) {
        let counts: Vec<u64> = items(&group["counts"]).iter().filter_map(Value::as_u64).collect();
        let mut cells = vec![
            counts.iter().sum::<u64>().to_string(),
            counts.last().copied().unwrap_or_default().to_string(),
            cell(group, name.1),
        ];
        cells.extend(more.map(|(_, place)| cell(group, place)));
        cells.push(bars(&counts));
        table.add_row(cells);
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
    fn a_group_tells_its_sum_and_the_last_hour() {
        let document = json!({"items": [{"fingerprint": "swrve/503", "target": "503", "counts": [2, 0, 3]}]});
        let shown = table_of(&document, "cause").tsv();
        assert!(shown.ends_with("5\t3\tswrve/503\t503\t▆·█"), "{shown}");
        let document =
            json!({"items": [{"fingerprint": null, "target": null, "resellerId": "acme", "counts": [0, 1]}]});
        let shown = table_of(&document, "reseller").tsv();
        assert!(shown.ends_with("1\t1\tacme\t·█"), "{shown}");
    }
}

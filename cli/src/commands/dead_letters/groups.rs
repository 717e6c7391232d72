//! `postrider dead-letters groups`.

use clap::Args;
use clap::builder::{ArgPredicate, PossibleValuesParser};
use domain::clock::{Clock as _, SystemClock};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::filter::FilterArgs;
use super::{by_reseller, nothing};
use crate::operator::OperatorArgs;
use crate::output::{self, Column, Form, FormArgs, Table};
use crate::shown::items;

/// Longest detail in a table, in characters.
const DETAIL_MAX: usize = 60;

#[derive(Debug, Args)]
pub(crate) struct GroupsArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// By what: the cause and its place, or whose they are.
    #[arg(long, default_value = "cause", value_parser = PossibleValuesParser::new(["cause", "reseller"]))]
    by: String,
    /// Replayed or discarded by this job; then in any state, unless one is given.
    #[arg(long, value_name = "ID")]
    job: Option<Uuid>,
    /// In this state.
    #[arg(long, default_value = "OPEN", default_value_if("job", ArgPredicate::IsPresent, "ALL"), value_parser = PossibleValuesParser::new(["OPEN", "REPLAYED", "DISCARDED", "ALL"]))]
    state: String,
    /// How many groups, or resellers.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    operator: OperatorArgs,
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
    note: Option<Note>,
}

#[derive(Deserialize)]
struct Note {
    note: Option<String>,
    owner: Option<String>,
}

impl Note {
    fn shown(&self) -> String {
        let parts = [&self.owner, &self.note];
        parts
            .into_iter()
            .flatten()
            .cloned()
            .collect::<Vec<_>>()
            .join(": ")
    }
}

#[derive(Deserialize)]
struct Sample {
    id: String,
    detail: String,
}

/// Counts dead letters by kind.
pub(crate) async fn run(args: &GroupsArgs) -> anyhow::Result<()> {
    let api = args.operator.connect()?;
    let filter = args.filter.found(&api).await?;
    let mut query = filter.filter(SystemClock.now());
    query.insert("state".to_owned(), args.state.as_str().into());
    if let Some(job) = args.job {
        query.insert("job".to_owned(), job.to_string().into());
    }
    query.insert("limit".to_owned(), args.limit.into());
    let form = args.form.form();
    if args.by == "reseller" {
        let document: Value = api.get("/dead-letters/resellers", &query).await?;
        if form != Form::Json && items(&document["items"]).is_empty() {
            filter.note_reseller(&api).await?;
        }
        return by_reseller::print(&document, form);
    }
    let document: Value = api.get("/dead-letters/groups", &query).await?;
    if form == Form::Json {
        return output::json(&document);
    }
    let groups: Groups = serde_json::from_value(document)?;
    if groups.items.is_empty() {
        if groups.at_least {
            output::note(
                "none of the newest dead letters that were counted matches; a narrower filter looks further back",
            );
        } else {
            filter.note_reseller(&api).await?;
            let hint = nothing::hint(&api, &filter).await?;
            output::note(format_args!("no dead letter matches{hint}"));
        }
        return form.table(&table_of(&[], false));
    }
    form.table(&table_of(&groups.items, form == Form::Table))?;
    let shown: u64 = groups.items.iter().map(|group| group.count).sum();
    let least = if groups.at_least { "at least " } else { "" };
    let all = domain::counted::of(groups.total, "dead letter", "dead letters");
    if groups.at_least || shown < groups.total {
        output::note(format!("{least}{all}, {shown} of them in the groups above"));
    } else {
        output::note(all);
    }
    Ok(())
}

fn table_of(groups: &[Group], is_short: bool) -> Table {
    let most = if is_short { DETAIL_MAX } else { usize::MAX };
    let mut columns = vec![
        Column::whole("dead letters"),
        Column::whole("kind").spare(2),
        Column::whole("fingerprint").name(),
        Column::whole("target").spare(3),
        Column::whole("first").spare(5),
        Column::whole("last").spare(4),
        Column::whole("the last one").spare(6),
        Column::prose("detail").spare(1),
    ];
    let has_notes = groups.iter().any(|group| group.note.is_some());
    if has_notes {
        columns.push(Column::prose("note").spare(3));
    }
    let mut table = output::table(columns);
    for group in groups {
        let mut row = vec![
            group.count.to_string(),
            group.kind.clone(),
            output::harmless(&group.fingerprint),
            output::harmless(&group.target),
            super::seconds(&group.first_seen),
            super::seconds(&group.last_seen),
            group.sample.id.clone(),
            super::shortened(&group.sample.detail, most),
        ];
        if has_notes {
            let note = group.note.as_ref().map(Note::shown).unwrap_or_default();
            row.push(super::shortened(&note, most));
        }
        table.add_row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_fit_the_terminal() {
        let group = |fingerprint: &str, target: &str, count, detail: &str| Group {
            fingerprint: fingerprint.to_owned(),
            kind: "HTTP".to_owned(),
            target: target.to_owned(),
            count,
            first_seen: "2026-11-19T08:15:00.5Z".to_owned(),
            last_seen: "2026-11-21T12:00:00.123456Z".to_owned(),
            sample: Sample {
                id: "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d".to_owned(),
                detail: detail.to_owned(),
            },
            note: None,
        };
        let groups = [
            group(
                "delivery/http/503/8f14e45fceea167a",
                "01a1fd84-191a-7334-a6ae-613178d80d71",
                12_043,
                "attempt 5 was answered with 503 Service Unavailable by hooks.reseller.example",
            ),
            group(
                "swrve/400/no such user",
                "Hello IOS",
                3,
                "attempt 1 failed with 400",
            ),
        ];
        insta::assert_snapshot!(output::at_widths(&table_of(&groups, true)));
    }
}

//! `postrider dead-letters list`.

use clap::Args;
use clap::builder::{ArgPredicate, PossibleValuesParser};
use domain::clock::{Clock as _, SystemClock};
use serde::Deserialize;
use uuid::Uuid;

use super::filter::FilterArgs;
use super::nothing;
use crate::api::Page;
use crate::operator::OperatorArgs;
use crate::output::{self, Column, Form, FormArgs, Table};
use crate::part::Part;

/// Longest detail in a table, in characters.
const DETAIL_MAX: usize = 80;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Replayed or discarded by this job; then in any state, unless one is given.
    #[arg(long, value_name = "ID")]
    job: Option<Uuid>,
    /// In this state.
    #[arg(long, default_value = "OPEN", default_value_if("job", ArgPredicate::IsPresent, "ALL"), value_parser = PossibleValuesParser::new(["OPEN", "REPLAYED", "DISCARDED", "ALL"]))]
    state: String,
    /// Which come first.
    #[arg(long, default_value = "newest", value_parser = PossibleValuesParser::new(["newest", "oldest"]))]
    order: String,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    operator: OperatorArgs,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeadLetter {
    id: String,
    state: String,
    reason: String,
    fingerprint: String,
    target: String,
    detail: String,
    created_at: String,
    #[serde(default)]
    reseller_id: Option<String>,
    #[serde(default)]
    subscription_id: Option<String>,
    #[serde(default)]
    push_id: Option<String>,
    #[serde(default)]
    notification_id: Option<String>,
    #[serde(default)]
    outcome: Option<String>,
}

/// Lists dead letters.
pub(crate) async fn run(args: &ListArgs) -> anyhow::Result<()> {
    let api = args.operator.connect()?;
    let filter = args.filter.found(&api).await?;
    let mut query = filter.filter(SystemClock.now());
    query.insert("state".to_owned(), args.state.as_str().into());
    if let Some(job) = args.job {
        query.insert("job".to_owned(), job.to_string().into());
    }
    query.insert("order".to_owned(), args.order.as_str().into());
    let document = args.part.of(&api, "/dead-letters", query).whole().await?;
    let form = args.form.form();
    if form == Form::Json {
        return output::json(&document);
    }
    let page: Page<DeadLetter> = serde_json::from_value(document)?;
    if page.items.is_empty() {
        if page.next.is_some() {
            output::note("no dead letter among those that were looked at");
        } else {
            filter.note_reseller(&api).await?;
            let hint = nothing::hint(&api, &filter).await?;
            output::note(format_args!("no dead letter matches{hint}"));
        }
    }
    form.table(&table_of(&page.items))?;
    if let Some(next) = page.next {
        output::note(format!("there are more: the same again with --cursor {next}"));
    }
    Ok(())
}

fn table_of(letters: &[DeadLetter]) -> Table {
    let mut table = output::table([
        Column::whole("id"),
        Column::whole("written").spare(3),
        Column::whole("reason").spare(2),
        Column::whole("outcome").spare(1),
        Column::whole("fingerprint"),
        Column::whole("target").spare(4),
        Column::prose("detail").spare(5),
        Column::whole("reseller").spare(6),
        Column::whole("push or notification").spare(7),
        Column::whole("subscription").spare(8),
    ]);
    for letter in letters {
        let reason = match letter.state.as_str() {
            "OPEN" => letter.reason.clone(),
            state => format!("{}, {state}", letter.reason),
        };
        table.add_row([
            letter.id.clone(),
            super::seconds(&letter.created_at),
            reason,
            output::harmless(letter.outcome.as_deref().unwrap_or_default()),
            output::harmless(&letter.fingerprint),
            output::harmless(&letter.target),
            super::shortened(&letter.detail, DETAIL_MAX),
            output::harmless(letter.reseller_id.as_deref().unwrap_or_default()),
            letter
                .push_id
                .clone()
                .or_else(|| letter.notification_id.clone())
                .unwrap_or_default(),
            letter.subscription_id.clone().unwrap_or_default(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn dead_letter(id: &str, fingerprint: &str, target: &str, detail: &str) -> DeadLetter {
        DeadLetter {
            id: id.to_owned(),
            state: "OPEN".to_owned(),
            reason: "GIVEN_UP".to_owned(),
            fingerprint: fingerprint.to_owned(),
            target: target.to_owned(),
            detail: detail.to_owned(),
            created_at: "2026-11-21T12:00:00.123456Z".to_owned(),
            reseller_id: Some("acme".to_owned()),
            subscription_id: Some("019ab2f0-5b1c-7c3e-9d41-6f1f2a3b4c60".to_owned()),
            push_id: None,
            notification_id: Some("019ab2f0-5b1c-7c3e-9d41-6f1f2a3b4c61".to_owned()),
            outcome: None,
        }
    }

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        list: ListArgs,
    }

    #[test]
    fn what_a_job_has_resolved_is_of_any_state_unless_one_is_given() {
        let job = "--job 019ab2f0-5b1c-7c3e-9d41-6f1f2a3b4c5e";
        let state = |options: &str| {
            let line = Line::try_parse_from(format!("x {options}").split_whitespace());
            line.expect("a command line").list.state
        };
        assert_eq!(state(""), "OPEN");
        assert_eq!(state(job), "ALL");
        assert_eq!(state(&format!("{job} --state DISCARDED")), "DISCARDED");
    }

    #[test]
    fn dead_letters_fit_the_terminal() {
        let mut discarded = dead_letter(
            "019ab2f0-5b1c-7c3e-9d41-6f1f2a3b4c5e",
            "swrve/400/no such user",
            "Hello IOS",
            "Will not be sent: attempt 1 failed with 400.",
        );
        discarded.state = "DISCARDED".to_owned();
        let mut replayed = dead_letter(
            "019ab2f0-5b1c-7c3e-9d41-6f1f2a3b4c5f",
            "swrve/503/busy",
            "Hello IOS",
            "Given up: attempt 5 failed with 503.",
        );
        (replayed.state, replayed.outcome) = ("REPLAYED".to_owned(), Some("FAILED_AGAIN".to_owned()));
        let letters = [
            dead_letter(
                "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d",
                "delivery/http/503/8f14e45fceea167a",
                "01a1fd84-191a-7334-a6ae-613178d80d71",
                "attempt 5 was answered with 503 Service Unavailable by hooks.reseller.example",
            ),
            discarded,
            replayed,
        ];
        insta::assert_snapshot!(output::at_widths(&table_of(&letters)));
    }
}

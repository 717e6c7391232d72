//! `postrider dead-letters replay` and `discard`: one dead letter at once, more of them as a job.

use std::cmp::Reverse;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _};
use domain::clock::{Clock as _, SystemClock};
use domain::counted::of;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::filter::{Filter, FilterArgs, only_up_to};
use super::nothing;
use crate::api::Api;
use crate::args::Cli;
use crate::commands::jobs::{self, Job};
use crate::commands::outcome::OutcomeArgs;
use crate::confirm::{Act, Yes};
use crate::operator::OperatorArgs;
use crate::output::{self, Column, Form, FormArgs, Table};
use crate::shown;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider dead-letters replay 5f0c9f0e-3a55-4d0a-9d43-0c6c2f7cf2b1
  postrider dead-letters replay --lane push --fingerprint 'swrve/503' --dry-run
  postrider dead-letters replay --target https://hooks.acme.example/postrider --newer-than 1h --yes --wait
  postrider dead-letters replay --target https://hooks.acme.example --canary 10 --pause-above 5 --yes
  postrider dead-letters replay --reseller acme --newer-than 2h --rate 50 --yes --wait --note 'the endpoint is back'")]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    what: WhatArgs,
    /// Sends so many again first, and the others when none of those failed again.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    canary: Option<u32>,
    /// Pauses the job when more than so many percent of what it has replayed failed again. What failed and is tried again counts as failed until it is delivered.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=99))]
    pause_above: Option<u32>,
    /// Why; kept with the dead letter and in the audit log.
    #[arg(long)]
    note: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider dead-letters discard 5f0c9f0e-3a55-4d0a-9d43-0c6c2f7cf2b1 --note 'a test of ours'
  postrider dead-letters discard --prototype Spring --older-than 3d --dry-run
  postrider dead-letters discard --prototype Spring --older-than 3d --yes --note 'the campaign is over'")]
pub(crate) struct DiscardArgs {
    #[command(flatten)]
    what: WhatArgs,
    /// Why; kept with the dead letter and in the audit log.
    #[arg(long, required_unless_present = "dry_run")]
    note: Option<String>,
}

#[derive(Debug, Args)]
struct WhatArgs {
    /// The dead letters, one by one.
    #[arg(value_name = "ID")]
    ids: Vec<Uuid>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Every open dead letter.
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Only counts the dead letters, by kind of failure.
    #[arg(long)]
    dry_run: bool,
    /// Most dead letters a second.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Takes so many dead letters at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    limit: Option<u32>,
    /// Which come first.
    #[arg(long, value_parser = ["oldest", "newest"])]
    order: Option<String>,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    outcome: OutcomeArgs,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    operator: OperatorArgs,
}

/// What is done to the dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Replay,
    Discard,
}

impl Action {
    fn verb(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Discard => "discard",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Replay => "replayed",
            Self::Discard => "discarded",
        }
    }
}

/// A job to be made, as the API takes it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NewJob<'a> {
    action: &'static str,
    #[serde(skip_serializing_if = "<[Uuid]>::is_empty")]
    ids: &'a [Uuid],
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<Filter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    per_second: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    canary: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_above: Option<u32>,
    dry_run: bool,
}

/// What only a replay is careful about.
#[derive(Debug, Clone, Copy, Default)]
struct Care {
    canary: Option<u32>,
    pause_above: Option<u32>,
}

/// Sends again what dead letters are about.
pub(crate) async fn replay(args: ReplayArgs) -> anyhow::Result<ExitCode> {
    let care = Care {
        canary: args.canary,
        pause_above: args.pause_above,
    };
    resolve(Action::Replay, &args.what, care, args.note.as_deref()).await
}

/// Puts dead letters aside.
pub(crate) async fn discard(args: DiscardArgs) -> anyhow::Result<ExitCode> {
    resolve(Action::Discard, &args.what, Care::default(), args.note.as_deref()).await
}

async fn resolve(
    action: Action,
    args: &WhatArgs,
    care: Care,
    note: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let by_list = !args.ids.is_empty();
    match (by_list, args.filter.is_empty()) {
        (true, false) => usage("give identifiers or a filter, not both"),
        (false, false) if args.all => usage("give a filter or --all, not both"),
        (false, true) if !args.all => usage(
            "say which dead letters: identifiers, a filter such as --fingerprint, or --all for every open one",
        ),
        _ => {}
    }
    let api = args.operator.connect()?;
    let form = args.form.form();
    // What is waited for is told by a job alone.
    let waits = args.outcome.wait && action == Action::Replay;
    if let ([id], false) = (&args.ids[..], args.dry_run || waits) {
        one(&api, action, *id, (note, form)).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let filter = args.filter.found(&api).await?;
    let mut new = NewJob {
        action: action.verb(),
        ids: &args.ids,
        filter: (!by_list).then(|| filter.filter(SystemClock.now())),
        note,
        per_second: args.rate,
        limit: args.limit,
        order: args.order.as_deref(),
        canary: care.canary,
        pause_above: care.pause_above,
        dry_run: true,
    };
    if args.dry_run || !by_list {
        let preview: Value = api.post("/dead-letters/jobs", &new).await?;
        if matching(&preview) == 0 {
            if args.dry_run && form == Form::Json {
                output::json(&preview)?;
            }
            filter.note_reseller(&api).await?;
            let hint = nothing::hint(&api, &filter).await?;
            bail!("no open dead letter matches; nothing was done{hint}");
        }
        if args.dry_run {
            show(&preview, form)?;
            if action == Action::Replay {
                note_retries(&api, &new).await?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        confirm(action, &preview, (args.limit, args.yes))?;
        let newest = preview["newest"].as_str().unwrap_or_default().parse();
        let newest = newest.context("the operator API did not say how new what matches is")?;
        new.filter = new.filter.map(|filter| only_up_to(filter, newest));
    }
    new.dry_run = false;
    let document: Value = api.post("/dead-letters/jobs", &new).await?;
    let job: Job = serde_json::from_value(document.clone())?;
    if action == Action::Replay {
        note_retries(&api, &new).await?;
    }
    if args.outcome.wait {
        return jobs::wait(&api, job.id, form, (args.outcome.within, args.outcome.patience)).await;
    }
    if !form.is_for_people() {
        jobs::show(document, form)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::result(format_args!(
        "job {} will {} {}; `postrider jobs watch {}` shows how far it is",
        job.id,
        action.verb(),
        dead_letters(job.matching),
        job.id
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Says how many notifications of the subscription are still tried again: a replay is of what was given up, and passes them by.
async fn note_retries(api: &Api, new: &NewJob<'_>) -> anyhow::Result<()> {
    let Some(subscription) = new.filter.as_ref().and_then(|filter| filter.get("subscription")) else {
        return Ok(());
    };
    let query = json!({ "subscription": subscription, "status": "RETRY", "limit": 200 });
    let waiting: Value = api.get("/notifications", &query).await?;
    let items = shown::items(&waiting["items"]);
    if let Some(url) = items.first().and_then(|first| first["url"].as_str()) {
        let least = if waiting["next"].is_null() {
            ""
        } else {
            "at least "
        };
        output::note(format_args!(
            "{least}{} for a retry and no dead letter, so that this passes by; `postrider retry-now endpoint {}` has them tried at once",
            of(
                items.len() as u64,
                "notification of the subscription waits",
                "notifications of the subscription wait"
            ),
            output::harmless(url)
        ));
    }
    Ok(())
}

/// Ends the program as clap does for a command line that it does not take.
fn usage(detail: &str) {
    Cli::command()
        .error(ErrorKind::MissingRequiredArgument, detail)
        .exit()
}

async fn one(api: &Api, action: Action, id: Uuid, (note, form): (Option<&str>, Form)) -> anyhow::Result<()> {
    let path = format!("/dead-letters/{id}/{}", action.verb());
    let letter: Value = api.post(&path, &json!({ "note": note })).await?;
    if !form.is_for_people() {
        let rows = [
            ("state", "/state"),
            ("push", "/pushId"),
            ("notification", "/notificationId"),
        ];
        return form.print(&letter, || shown::record("dead letter", &letter, rows));
    }
    let about = ["pushId", "notificationId"]
        .iter()
        .find_map(|name| letter[*name].as_str());
    match (action, about) {
        (Action::Replay, Some(about)) => output::result(format_args!(
            "replayed {id}; `postrider explain {about}` tells what becomes of it"
        ))?,
        _ => output::result(format_args!("{} {id}", action.done()))?,
    }
    Ok(())
}

fn show(preview: &Value, form: Form) -> anyhow::Result<()> {
    form.print(preview, || kinds_of(preview))?;
    if !form.is_for_people() {
        return Ok(());
    }
    form.table(&event_types_of(preview))?;
    if let Some(part) = looked_at(preview) {
        output::note(part);
    }
    let word = |name: &str| preview[name].as_str().unwrap_or("-").to_owned();
    output::result(format_args!(
        "{}, from {} to {}",
        dead_letters(matching(preview)),
        word("oldest"),
        word("newest")
    ))?;
    Ok(())
}

fn kinds_of(preview: &Value) -> Table {
    let mut table = output::table([
        Column::whole("lane"),
        Column::whole("fingerprint").name(),
        Column::whole("dead letters"),
    ]);
    for kind in preview["byFingerprint"].as_array().into_iter().flatten() {
        table.add_row([
            kind["lane"].as_str().unwrap_or_default().to_owned(),
            output::harmless(kind["fingerprint"].as_str().unwrap_or_default()),
            kind["count"].to_string(),
        ]);
    }
    table
}

/// What a replay is about by event type, the most frequent first; empty of pushes and of a discard.
fn event_types_of(preview: &Value) -> Table {
    let mut table = output::table([Column::whole("event type").name(), Column::whole("dead letters")]);
    let counts = preview["byEventType"].as_object().into_iter().flatten();
    let mut counts: Vec<_> = counts
        .map(|(name, count)| (name, count.as_u64().unwrap_or_default()))
        .collect();
    // Those of the same number stay in the order of their names.
    counts.sort_by_key(|(_, count)| Reverse(*count));
    for (name, count) in counts {
        table.add_row([output::harmless(name), count.to_string()]);
    }
    table
}

/// Of how many the event types are, where those are not all.
fn looked_at(preview: &Value) -> Option<String> {
    let sampled = preview["sampled"].as_u64().unwrap_or_default();
    let has_types = preview["byEventType"]
        .as_object()
        .is_some_and(|types| !types.is_empty());
    (has_types && sampled < matching(preview))
        .then(|| format!("event types are those of the first {}", dead_letters(sampled)))
}

fn dead_letters(count: u64) -> String {
    of(count, "dead letter", "dead letters")
}

fn matching(preview: &Value) -> u64 {
    preview["matching"].as_u64().unwrap_or_default()
}

/// Makes sure that as many dead letters are meant as match.
fn confirm(action: Action, preview: &Value, (limit, yes): (Option<u32>, Yes)) -> anyhow::Result<()> {
    let count = matching(preview).min(limit.map_or(u64::MAX, u64::from));
    let act = Act {
        what: &format!("{} {}", action.verb(), dead_letters(count)),
        effect: "",
        instead: "--dry-run to see which kinds",
    };
    yes.confirm(&act, || output::note(kinds_of(preview)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_of_a_replay_says_of_which_event_types_it_is() {
        let preview = json!({"matching": 2_400, "sampled": 1_000, "byEventType": {"contact.deleted": 7, "domain.created": 993}});
        assert_eq!(
            event_types_of(&preview).tsv(),
            "event type\tdead letters\ndomain.created\t993\ncontact.deleted\t7"
        );
        let part = "event types are those of the first 1,000 dead letters";
        assert_eq!(looked_at(&preview).as_deref(), Some(part));
    }

    #[test]
    fn where_there_is_no_event_type_nothing_is_said_of_them() {
        for preview in [
            json!({"matching": 3, "sampled": 3, "byEventType": {}}),
            json!({"matching": 2_400, "sampled": 0, "byEventType": {}}),
        ] {
            assert!(event_types_of(&preview).is_empty());
            assert_eq!(looked_at(&preview), None);
        }
    }
}

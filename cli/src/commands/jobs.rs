//! `postrider jobs`: bulk work on dead letters, on its way.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use domain::counted;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::age::Age;
use crate::api::Api;
use crate::commands::outcome::{self, Outcome, Patience, Within};
use crate::commands::search;
use crate::operator::Common;
use crate::output::{self, Column, Form, Table};
use crate::part::Part;
use crate::progress::Progress;
use crate::shown::{self, ShownColumn};

/// How often a job is looked at while a command waits for it.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  postrider jobs list --status RUNNING
  postrider jobs show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider jobs watch 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider jobs pause 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --note 'Swrve is slow'
  postrider jobs rate 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d 20
  postrider jobs resume 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider jobs cancel 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --note 'the filter was too wide'")]
pub(crate) enum JobsCommand {
    /// Lists jobs, the newest first.
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Shows a job, and what became of what it has sent again.
    Show(JobArgs),
    /// Stops a job until it is resumed; what it has done stays done.
    Pause(CommandArgs),
    /// Changes how many dead letters a second a job takes at most.
    Rate(RateArgs),
    /// Lets a paused job go on.
    Resume(CommandArgs),
    /// Ends a job before it is through; what it has done stays done.
    Cancel(CommandArgs),
    /// Shows how far a job is until it has ended, and what became of what it has sent again.
    ///
    /// Exits 1 if it was cancelled or has paused itself since too much failed again, and 4 if not all of what it has sent again was delivered.
    Watch(WatchArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Of this status; of any when not given.
    #[arg(long, value_parser = ["RUNNING", "PAUSED", "COMPLETED", "CANCELLED"], ignore_case = true)]
    status: Option<String>,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The job.
    id: Uuid,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    patience: Patience,
    /// Watches no longer than this, such as 10m; exit code 4 when the time is over.
    #[arg(long, value_name = "DURATION")]
    within: Option<Age>,
}

#[derive(Debug, Args)]
pub(crate) struct CommandArgs {
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    job: JobArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RateArgs {
    #[command(flatten)]
    job: JobArgs,
    /// Most dead letters a second.
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
}

const COLUMNS: [ShownColumn; 10] = [
    (Column::whole("id"), "/id"),
    (Column::whole("action").spare(2), "/action"),
    (Column::whole("status"), "/status"),
    (Column::whole("done"), "/done"),
    (Column::whole("skipped").spare(3), "/skipped"),
    (Column::whole("of"), "/matching"),
    (Column::prose("outcome").spare(1), "/outcome"),
    (Column::whole("by").spare(4), "/createdBy"),
    (Column::time("made").spare(5), "/createdAt"),
    (Column::prose("note").spare(6), "/note"),
];

/// A job, as far as it is shown.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Job {
    pub(crate) id: Uuid,
    action: String,
    status: String,
    per_second: u32,
    pub(crate) matching: u64,
    examined: u64,
    done: u64,
    skipped: BTreeMap<String, u64>,
    note: Option<String>,
    filter: Option<Value>,
    created_by: String,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    recovers: Option<Uuid>,
    ended_because: Option<String>,
    cancelled_by: Option<String>,
    limit: Option<u64>,
    order: Option<String>,
    canary: Option<u64>,
    pause_above: Option<u64>,
    paused_because: Option<String>,
    eta: Option<DateTime<Utc>>,
}

/// Does what the command says.
pub(crate) async fn run(command: JobsCommand) -> anyhow::Result<ExitCode> {
    let done = match command {
        JobsCommand::List(args) => list(&args).await,
        JobsCommand::Show(args) => {
            let api = args.common.operator.connect()?;
            let mut document: Value = api.get(&path(args.id), &()).await?;
            if document["action"] == "replay" {
                document["outcome"] = outcome::of(&api, args.id).await?.unwrap_or_default();
            }
            show(document, args.common.form())
        }
        JobsCommand::Pause(args) => tell(&args, "pause").await,
        JobsCommand::Rate(args) => {
            let api = args.job.common.operator.connect()?;
            let body = json!({ "perSecond": args.rate, "note": args.note });
            let document: Value = api.send(Method::PATCH, &path(args.job.id), &body).await?;
            show(document, args.job.common.form())
        }
        JobsCommand::Resume(args) => tell(&args, "resume").await,
        JobsCommand::Cancel(args) => tell(&args, "cancel").await,
        JobsCommand::Watch(WatchArgs {
            job,
            patience,
            within,
        }) => {
            let api = job.common.operator.connect()?;
            let patience = (Within::of(within), patience);
            return wait(&api, job.id, job.common.form(), patience).await;
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn path(id: Uuid) -> String {
    format!("/dead-letters/jobs/{id}")
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let api = args.common.operator.connect()?;
    let status = args.status.as_ref().map(|status| status.to_uppercase());
    let query = search::query([("status", status)]);
    let mut document = args.part.of(&api, "/dead-letters/jobs", query).whole().await?;
    if args.common.form() != Form::Json {
        let jobs = document["items"].as_array_mut().into_iter().flatten();
        for job in jobs.filter(|job| job.is_object()) {
            sum_up(job)?;
        }
    }
    shown::print(&document, args.common.form(), COLUMNS, "no job matches")
}

/// Puts into one cell each what a job says in objects.
fn sum_up(job: &mut Value) -> anyhow::Result<()> {
    let skipped = job["skipped"].as_object().into_iter().flatten();
    job["skipped"] = skipped
        .filter_map(|(_, count)| count.as_u64())
        .sum::<u64>()
        .into();
    if job["outcome"].is_object() {
        job["outcome"] = Outcome::read(&job["outcome"])?.sentence().into();
    }
    Ok(())
}

async fn tell(args: &CommandArgs, command: &str) -> anyhow::Result<()> {
    let api = args.job.common.operator.connect()?;
    let path = format!("{}/{command}", path(args.job.id));
    let document: Value = api.post(&path, &json!({ "note": args.note })).await?;
    let resumed = (command == "resume" && document["action"] == "replay").then(|| document.clone());
    show(document, args.job.common.form())?;
    if let Some(document) = resumed
        && let Some(outcome) = outcome::of(&api, args.job.id).await?
    {
        let job: Job = serde_json::from_value(document)?;
        for advice in advice_on_failed(&job, &Outcome::read(&outcome)?) {
            output::note(format!("it goes on with the others; {advice}"));
        }
    }
    Ok(())
}

/// What a job has replayed and failed again got dead letters of its own since, which the job does not take: the commands that replay those within
/// its own filter. Of dead letters that were chosen one by one no filter finds them.
fn advice_on_failed(job: &Job, outcome: &Outcome) -> Vec<String> {
    let failures = outcome.failures();
    let Some(mut filter) = job.filter.as_ref().and_then(Value::as_object).cloned() else {
        let list = format!("`postrider dead-letters list --job {}`", job.id);
        let advice = format!("{list} shows which of those that were chosen failed again");
        return (!failures.is_empty()).then_some(advice).into_iter().collect();
    };
    // How it failed before says nothing of how it failed again; of a push the target is what Swrve answered.
    filter.retain(|name, value| match name.as_str() {
        "lane" | "subscription" | "reseller" | "eventType" | "prototype" => true,
        "target" => value.as_str().is_some_and(|target| target.contains("://")),
        _ => false,
    });
    let mut filter = Value::Object(filter);
    filter["since"] = time(job.created_at).into();
    let replay = |fingerprint: &str| {
        filter["fingerprint"] = fingerprint.into();
        let options = options(&filter);
        format!("`postrider dead-letters replay {options}` replays what failed again")
    };
    failures.into_iter().map(replay).collect()
}

pub(crate) fn show(document: Value, form: Form) -> anyhow::Result<()> {
    if form == Form::Json {
        return output::json(&document);
    }
    let outcome = match &document["outcome"] {
        Value::Null => None,
        outcome => Some(Outcome::read(outcome)?),
    };
    let job: Job = serde_json::from_value(document)?;
    let mut table = Table::record("job", &job.id.to_string());
    let skipped: Vec<String> = job
        .skipped
        .iter()
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    let which = match &job.filter {
        Some(filter) => format!("those open that match {}", options(filter)),
        None => "those chosen one by one".to_owned(),
    };
    let rows = [
        ("action", job.action.clone()),
        ("dead letters", which),
        ("status", job.status.clone()),
        ("paused because", paused_because(&job, outcome.as_ref())),
        ("done", format!("{} of {}", job.done, job.matching)),
        ("skipped", skipped.join(", ")),
        ("rate", format!("{} a second", job.per_second)),
        ("care", care(&job)),
        ("by", job.created_by.clone()),
        ("made", time(job.created_at)),
        ("expected end", job.eta.map(time).unwrap_or_default()),
        ("ended", job.finished_at.map(time).unwrap_or_default()),
        ("cancelled", cancelled(&job)),
        ("because", job.ended_because.unwrap_or_default()),
        (
            "recovers",
            job.recovers.map(|id| id.to_string()).unwrap_or_default(),
        ),
        ("note", job.note.unwrap_or_default()),
        (
            "outcome",
            outcome.as_ref().map(Outcome::sentence).unwrap_or_default(),
        ),
    ];
    for (name, value) in rows {
        if !value.is_empty() {
            table.add_row([name, output::harmless(&value).as_str()]);
        }
    }
    form.table(&table)?;
    match outcome.and_then(|outcome| outcome.table()) {
        Some(kinds) if form.is_for_people() => form.table(&kinds),
        _ => Ok(()),
    }
}

/// How careful a job is, in words.
fn care(job: &Job) -> String {
    let parts = [
        job.limit.map(|limit| format!("at most {limit}")),
        job.order
            .as_deref()
            .filter(|order| *order == "newest")
            .map(|order| format!("{order} first")),
        job.canary.map(|canary| format!("{canary} before the others")),
        job.pause_above
            .map(|percent| format!("paused when more than {percent} % fail again")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Who has cancelled a job, when, how far it was, and what it has not looked at.
fn cancelled(job: &Job) -> String {
    if job.status != "CANCELLED" {
        return String::new();
    }
    let who = match (&job.cancelled_by, &job.ended_because) {
        (_, Some(_)) => "Postrider",
        (Some(by), None) => by.as_str(),
        (None, None) => "an operator",
    };
    let at = job.finished_at.map(|at| format!(" at {}", time(at)));
    format!(
        "by {who}{}, after {} of {}; {} left untouched",
        at.unwrap_or_default(),
        counted::number(job.examined),
        counted::of(job.matching, "dead letter", "dead letters"),
        counted::number(job.matching.saturating_sub(job.examined))
    )
}

/// In words; which of the reasons of a failed canary it was, the outcome tells.
fn paused_because(job: &Job, outcome: Option<&Outcome>) -> String {
    let words = match job.paused_because.as_deref() {
        None => "",
        Some("OPERATOR") => "an operator paused it",
        Some("CANARY") => "it waits for what becomes of the first, and goes on by itself",
        Some("CANARY_FAILED") if outcome.is_some() => {
            return outcome.map(Outcome::of_failed_canary).unwrap_or_default();
        }
        Some("CANARY_FAILED") => {
            "one of the first failed again, none was delivered, or it was not known after a day"
        }
        Some("FAILED_AGAIN") => "too much of what it has replayed failed again",
        Some(other) => other,
    };
    words.to_owned()
}

/// A filter of the API as the options that say the same.
pub(crate) fn options(filter: &Value) -> String {
    let members = filter.as_object().into_iter().flatten();
    let options = members
        .filter(|(name, value)| *name != "state" && !value.is_null())
        .map(|(name, _)| {
            let value = shown::cell(filter, &format!("/{name}"));
            let quote = if value
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_./:".contains(c))
            {
                ""
            } else {
                "'"
            };
            let name = match name.as_str() {
                "eventType" => "event-type",
                "url" => "with-url",
                name => name,
            };
            format!("--{name} {quote}{value}{quote}")
        });
    let options: Vec<String> = options.collect();
    if options.is_empty() {
        "--all".to_owned()
    } else {
        options.join(" ")
    }
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Shows how far a job is until it has ended, and then what became of what it has sent again.
///
/// # Errors
///
/// When it was cancelled or has paused itself, among others: what the caller waited for will not happen by itself.
pub(crate) async fn wait(
    api: &Api,
    id: Uuid,
    form: Form,
    (within, patience): (Within, Patience),
) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let not_come = [
        format!("the job {id} has not ended"),
        format!("`postrider jobs watch {id}` shows how far it is"),
    ];
    let mut document = within.limit(until_ended(api, id, form), not_come).await?;
    let cancelled = document["status"] == "CANCELLED";
    // Nothing becomes of what was discarded.
    let code = if document["action"] == "replay" {
        let patience = within.left(started, patience, Duration::ZERO);
        let found = outcome::wait(patience, async || outcome::of(api, id).await).await?;
        let outcome = found.as_ref().map(Outcome::read).transpose()?;
        let skipped = serde_json::from_value(document["skipped"].clone()).unwrap_or_default();
        document["outcome"] = found.unwrap_or_default();
        let code = outcome::exit_code(outcome.as_ref(), &skipped);
        outcome::note_one_that_waits(api, id, outcome.as_ref()).await;
        code
    } else {
        ExitCode::SUCCESS
    };
    show(document, form)?;
    if cancelled {
        bail!("the job was cancelled before it was through");
    }
    Ok(code)
}

async fn until_ended(api: &Api, id: Uuid, form: Form) -> anyhow::Result<Value> {
    let progress = Progress::of("dead letters");
    loop {
        let document: Value = api.get(&path(id), &()).await?;
        let job: Job = serde_json::from_value(document.clone())?;
        progress.show(job.examined, job.matching, &word(&job));
        if matches!(job.status.as_str(), "COMPLETED" | "CANCELLED") {
            return Ok(document);
        }
        // Nothing happens until an operator decides; one that waits for its first ones goes on by itself.
        if matches!(
            job.paused_because.as_deref(),
            Some("CANARY_FAILED" | "FAILED_AGAIN")
        ) {
            drop(progress);
            let mut document = document;
            let found = outcome::of(api, id).await?;
            let outcome = found.as_ref().map(Outcome::read).transpose()?;
            document["outcome"] = found.unwrap_or_default();
            show(document, form)?;
            bail!(paused_itself(&job, outcome.as_ref()));
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Why a job has paused itself, and what can be done about it.
fn paused_itself(job: &Job, outcome: Option<&Outcome>) -> String {
    let (why, id) = (paused_because(job, outcome), job.id);
    format!(
        "the job has paused itself: {why}; `postrider jobs show {id}` shows what failed, `postrider jobs resume {id}` lets it go on, and \
         `postrider jobs cancel {id}` ends it"
    )
}

/// What there is to say besides how many.
fn word(job: &Job) -> String {
    match job.status.as_str() {
        "RUNNING" => job
            .eta
            .map(|eta| format!("expected end {}", time(eta)))
            .unwrap_or_default(),
        other => match paused_because(job, None) {
            why if why.is_empty() => other.to_lowercase(),
            why => format!("{}: {why}", other.to_lowercase()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_of_a_job_is_shown_as_the_options_that_say_the_same() {
        let filter = json!({"fingerprint": "swrve/*", "eventType": "domain.created", "since": "2026-11-21T12:00:00Z", "state": "OPEN",
                            "lane": null});
        assert_eq!(
            options(&filter),
            "--event-type domain.created --fingerprint 'swrve/*' --since 2026-11-21T12:00:00Z"
        );
        assert_eq!(options(&json!({"state": "OPEN"})), "--all");
    }

    #[test]
    fn a_cancelled_job_says_who_stopped_it_when_and_what_is_left() {
        let mut job = json!({"id": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d", "action": "replay", "status": "CANCELLED", "perSecond": 1,
                             "matching": 15, "examined": 12, "done": 10, "skipped": {"DELIVERED": 2}, "createdBy": "ada",
                             "createdAt": "2026-11-21T12:00:00Z", "finishedAt": "2026-11-21T12:00:12.5Z", "cancelledBy": "maria"});
        let said = |job: &Value| cancelled(&serde_json::from_value::<Job>(job.clone()).unwrap());
        assert_eq!(
            said(&job),
            "by maria at 2026-11-21T12:00:12Z, after 12 of 15 dead letters; 3 left untouched"
        );
        job["cancelledBy"] = Value::Null;
        job["endedBecause"] = "FAILING".into();
        assert!(said(&job).starts_with("by Postrider at"), "{}", said(&job));
        job["status"] = "COMPLETED".into();
        assert_eq!(said(&job), "");
    }

    #[test]
    fn a_failed_canary_says_why_and_what_replays_what_failed_again() {
        let job = json!({"id": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d", "action": "replay", "status": "PAUSED", "perSecond": 1, "matching": 15,
                         "examined": 1, "done": 1, "skipped": {}, "createdBy": "ada", "createdAt": "2026-11-21T12:00:00Z",
                         "pausedBecause": "CANARY_FAILED"});
        let mut job: Job = serde_json::from_value(job).unwrap();
        let outcome = |waiting: u64, failed: u64| {
            let fates =
                json!({"delivered": 0, "waiting": waiting, "failedAgain": failed, "cancelled": 0, "gone": 0});
            let mut kind = fates.clone();
            kind["fingerprint"] = "delivery/timeout".into();
            kind["failures"] = if failed > 0 {
                json!({"delivery/http/400": failed})
            } else {
                json!({})
            };
            let mut document = fates;
            document["examined"] = 1.into();
            document["whole"] = true.into();
            document["byFingerprint"] = json!([kind]);
            Outcome::read(&document).unwrap()
        };
        let said = |waiting, failed| paused_because(&job, Some(&outcome(waiting, failed)));
        assert_eq!(said(0, 1), "of the first, 1 failed again");
        assert_eq!(said(1, 0), "what became of the first was not known after a day");
        assert_eq!(said(0, 0), "none of the first was delivered");
        let whole = paused_itself(&job, Some(&outcome(0, 1)));
        assert!(
            whole.starts_with("the job has paused itself: of the first, 1 failed again; "),
            "{whole}"
        );
        for command in ["show", "resume", "cancel"] {
            let command = format!("`postrider jobs {command} 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d`");
            assert!(whole.contains(&command), "{whole}");
        }
        assert_eq!(
            advice_on_failed(&job, &outcome(0, 1)),
            [
                "`postrider dead-letters list --job 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d` shows which of those that were chosen failed again"
            ]
        );
        assert!(advice_on_failed(&job, &outcome(0, 0)).is_empty());
        // Of its filter, what still holds of what failed again.
        for (filter, options) in [
            (
                json!({"state": "OPEN", "lane": null, "reason": "GIVEN_UP", "fingerprint": "delivery/timeout", "subscription": "5",
                       "until": "2026-11-21T11:00:00Z"}),
                "--fingerprint delivery/http/400 --since 2026-11-21T12:00:00Z --subscription 5",
            ),
            (
                json!({"target": "https://shop.example", "reseller": "acme"}),
                "--fingerprint delivery/http/400 --reseller acme --since 2026-11-21T12:00:00Z --target https://shop.example",
            ),
            (
                json!({"lane": "push", "target": "503", "since": "2026-11-20T12:00:00Z"}),
                "--fingerprint delivery/http/400 --lane push --since 2026-11-21T12:00:00Z",
            ),
        ] {
            job.filter = Some(filter);
            let replay = format!("`postrider dead-letters replay {options}` replays what failed again");
            assert_eq!(advice_on_failed(&job, &outcome(0, 1)), [replay]);
        }
    }

    #[test]
    fn jobs_fit_the_terminal() {
        let mut jobs = [
            json!({"id": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d", "action": "replay", "status": "COMPLETED", "done": 12, "matching": 15,
                   "skipped": {"DELIVERED": 2, "GONE": 1}, "createdBy": "maria", "createdAt": "2026-11-21T12:00:00.123456Z",
                   "outcome": {"delivered": 9, "waiting": 0, "failedAgain": 3, "cancelled": 0, "gone": 0, "examined": 12, "whole": true,
                               "byFingerprint": []}}),
            json!({"id": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5e", "action": "discard", "status": "RUNNING", "done": 1, "matching": 2,
                   "skipped": {}, "createdBy": "maria", "createdAt": "2026-11-21T12:00:00Z", "note": "an old campaign",
                   "outcome": null}),
        ];
        for job in &mut jobs {
            sum_up(job).unwrap();
        }
        insta::assert_snapshot!(output::at_widths(&shown::list(&json!(jobs), COLUMNS)));
    }
}

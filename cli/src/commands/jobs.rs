//! `postrider jobs`: bulk work on dead letters, on its way.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::Api;
use crate::operator::Common;
use crate::output::{self, Column, Table};
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
  postrider jobs resume 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider jobs cancel 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --note 'the filter was too wide'")]
pub(crate) enum JobsCommand {
    /// Lists jobs, the newest first.
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Shows a job.
    Show(JobArgs),
    /// Stops a job until it is resumed; what it has done stays done.
    Pause(CommandArgs),
    /// Lets a paused job go on.
    Resume(CommandArgs),
    /// Ends a job before it is through; what it has done stays done.
    Cancel(CommandArgs),
    /// Shows how far a job is until it has ended; exits 1 if it was cancelled.
    Watch(JobArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Of this status; of any when not given.
    #[arg(long, value_parser = ["RUNNING", "PAUSED", "COMPLETED", "CANCELLED"], ignore_case = true)]
    status: Option<String>,
    /// How many.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Where the previous part ended.
    #[arg(long)]
    cursor: Option<String>,
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
pub(crate) struct CommandArgs {
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    job: JobArgs,
}

const COLUMNS: [ShownColumn; 9] = [
    (Column::whole("id"), "/id"),
    (Column::whole("action"), "/action"),
    (Column::whole("status"), "/status"),
    (Column::whole("done"), "/done"),
    (Column::whole("skipped").spare(1), "/skipped"),
    (Column::whole("of"), "/matching"),
    (Column::whole("by").spare(2), "/createdBy"),
    (Column::time("made").spare(3), "/createdAt"),
    (Column::prose("note").spare(4), "/note"),
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
    eta: Option<DateTime<Utc>>,
}

/// Does what the command says.
pub(crate) async fn run(command: JobsCommand) -> anyhow::Result<()> {
    match command {
        JobsCommand::List(args) => list(&args).await,
        JobsCommand::Show(args) => {
            let api = args.common.operator.connect()?;
            let document: Value = api.get(&path(args.id), &()).await?;
            show(document, args.common.json)
        }
        JobsCommand::Pause(args) => tell(&args, "pause").await,
        JobsCommand::Resume(args) => tell(&args, "resume").await,
        JobsCommand::Cancel(args) => tell(&args, "cancel").await,
        JobsCommand::Watch(JobArgs { id, common }) => {
            wait(&common.operator.connect()?, id, common.json).await
        }
    }
}

fn path(id: Uuid) -> String {
    format!("/dead-letters/jobs/{id}")
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let api = args.common.operator.connect()?;
    let query = [
        ("limit", Some(args.limit.to_string())),
        ("status", args.status.as_ref().map(|status| status.to_uppercase())),
        ("cursor", args.cursor.clone()),
    ];
    let mut document: Value = api.get("/dead-letters/jobs", &query).await?;
    if !args.common.json {
        let jobs = document["items"].as_array_mut().into_iter().flatten();
        for job in jobs.filter(|job| job.is_object()) {
            let skipped = job["skipped"].as_object().into_iter().flatten();
            job["skipped"] = skipped
                .filter_map(|(_, count)| count.as_u64())
                .sum::<u64>()
                .into();
        }
    }
    shown::print(&document, args.common.json, COLUMNS, "no job matches")
}

async fn tell(args: &CommandArgs, command: &str) -> anyhow::Result<()> {
    let api = args.job.common.operator.connect()?;
    let path = format!("{}/{command}", path(args.job.id));
    let document: Value = api.post(&path, &json!({ "note": args.note })).await?;
    show(document, args.job.common.json)
}

fn show(document: Value, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return output::json(&document);
    }
    let job: Job = serde_json::from_value(document)?;
    let mut table = Table::record("job", &job.id.to_string());
    let skipped: Vec<String> = job
        .skipped
        .iter()
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    let which = match &job.filter {
        Some(filter) => format!("those open that match {filter}"),
        None => "those chosen one by one".to_owned(),
    };
    let rows = [
        ("action", job.action.clone()),
        ("dead letters", which),
        ("status", job.status.clone()),
        ("done", format!("{} of {}", job.done, job.matching)),
        ("skipped", skipped.join(", ")),
        ("rate", format!("{} a second", job.per_second)),
        ("by", job.created_by.clone()),
        ("made", time(job.created_at)),
        ("through at", job.eta.map(time).unwrap_or_default()),
        ("ended", job.finished_at.map(time).unwrap_or_default()),
        ("because", job.ended_because.unwrap_or_default()),
        (
            "recovers",
            job.recovers.map(|id| id.to_string()).unwrap_or_default(),
        ),
        ("note", job.note.unwrap_or_default()),
    ];
    for (name, value) in rows {
        if !value.is_empty() {
            table.add_row([name, output::harmless(&value).as_str()]);
        }
    }
    output::result(table)?;
    Ok(())
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Shows how far a job is until it has ended.
///
/// # Errors
///
/// When it was cancelled, among others: what the caller waited for will not happen.
pub(crate) async fn wait(api: &Api, id: Uuid, as_json: bool) -> anyhow::Result<()> {
    let progress = Progress::of("dead letters");
    let document = loop {
        let document: Value = api.get(&path(id), &()).await?;
        let job: Job = serde_json::from_value(document.clone())?;
        progress.show(job.examined, job.matching, &word(&job));
        if matches!(job.status.as_str(), "COMPLETED" | "CANCELLED") {
            break document;
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    };
    drop(progress);
    let cancelled = document["status"] == "CANCELLED";
    show(document, as_json)?;
    if cancelled {
        bail!("the job was cancelled before it was through");
    }
    Ok(())
}

/// What there is to say besides how many.
fn word(job: &Job) -> String {
    match job.status.as_str() {
        "RUNNING" => job
            .eta
            .map(|eta| format!("through at {}", time(eta)))
            .unwrap_or_default(),
        other => other.to_lowercase(),
    }
}

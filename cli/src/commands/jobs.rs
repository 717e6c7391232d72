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
use crate::operator::OperatorArgs;
use crate::output::{self, Column, Table};
use crate::progress::Progress;

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
    /// As JSON, just as the API answers.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    operator: OperatorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The job.
    id: Uuid,
    /// As JSON, just as the API answers.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    operator: OperatorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CommandArgs {
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    job: JobArgs,
}

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
            let api = args.operator.connect()?;
            let document: Value = api.get(&path(args.id), &()).await?;
            show(document, args.json)
        }
        JobsCommand::Pause(args) => tell(&args, "pause").await,
        JobsCommand::Resume(args) => tell(&args, "resume").await,
        JobsCommand::Cancel(args) => tell(&args, "cancel").await,
        JobsCommand::Watch(args) => wait(&args.operator.connect()?, args.id, args.json).await,
    }
}

fn path(id: Uuid) -> String {
    format!("/dead-letters/jobs/{id}")
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let api = args.operator.connect()?;
    let mut query = vec![("limit", args.limit.to_string())];
    query.extend(
        args.status
            .as_ref()
            .map(|status| ("status", status.to_uppercase())),
    );
    query.extend(args.cursor.clone().map(|cursor| ("cursor", cursor)));
    let document: Value = api.get("/dead-letters/jobs", &query).await?;
    if args.json {
        return output::json(&document);
    }
    let jobs: Vec<Job> = serde_json::from_value(document["items"].clone())?;
    if jobs.is_empty() {
        output::note("no job matches");
        return Ok(());
    }
    let mut table = output::table([
        Column::whole("id"),
        Column::whole("action"),
        Column::whole("status"),
        Column::whole("done"),
        Column::whole("skipped").spare(1),
        Column::whole("of"),
        Column::whole("by").spare(2),
        Column::whole("made").spare(3),
        Column::prose("note").spare(4),
    ]);
    for job in jobs {
        table.add_row([
            job.id.to_string(),
            job.action,
            job.status,
            job.done.to_string(),
            job.skipped.values().sum::<u64>().to_string(),
            job.matching.to_string(),
            output::harmless(&job.created_by),
            time(job.created_at),
            output::harmless(job.note.as_deref().unwrap_or_default()),
        ]);
    }
    output::result(table)?;
    if let Some(cursor) = document["next"].as_str() {
        output::note(format_args!("there are more: add --cursor {cursor}"));
    }
    Ok(())
}

async fn tell(args: &CommandArgs, command: &str) -> anyhow::Result<()> {
    let api = args.job.operator.connect()?;
    let path = format!("{}/{command}", path(args.job.id));
    let document: Value = api.post(&path, &json!({ "note": args.note })).await?;
    show(document, args.job.json)
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

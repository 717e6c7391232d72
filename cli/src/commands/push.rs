//! `postrider push`: handing in one push, and looking at one.

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use domain::push::Platform;
use serde_json::Value;
use uuid::Uuid;

use crate::ingest::{self, Attempt, Ingest, IngestArgs, Push, PushRequest};
use crate::output::{self, Column, Table};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  postrider push --platform ANDROID --prototype 'Good bye' --push-key 463B3209 --message 'See you!'
  postrider push --platform IOS --push-key 463B3209 --message 'Good morning' --cron '* * 9-17 ? * MON-FRI'
  postrider push show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d"
)]
pub(crate) struct PushArgs {
    #[command(subcommand)]
    command: Option<PushCommand>,
    #[command(flatten)]
    ingest: IngestArgs,
    #[command(flatten)]
    push: PostArgs,
}

#[derive(Debug, Subcommand)]
enum PushCommand {
    /// Shows what has become of a push.
    Show {
        /// Its identifier, as `postrider push` printed it.
        id: Uuid,
        /// As JSON, just as GET /push/{id} answers.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        ingest: IngestArgs,
    },
}

/// Required unless a subcommand is given, which is why the types are optional.
#[derive(Debug, Args)]
struct PostArgs {
    /// The platform of the client's device.
    #[arg(long, required = true, ignore_case = true, value_parser = platform())]
    platform: Option<Platform>,
    /// The message prototype, which decides on the Swrve push key.
    #[arg(long)]
    prototype: Option<String>,
    /// The client's device id in Swrve.
    #[arg(long, required = true)]
    push_key: Option<String>,
    /// The text.
    #[arg(long, required = true)]
    message: Option<String>,
    /// When it may be sent, as a Quartz cron expression; at once when not given.
    #[arg(long)]
    cron: Option<String>,
    /// Makes it safe to repeat the command: the same key and push are stored once.
    #[arg(long)]
    idempotency_key: Option<String>,
}

fn platform() -> impl clap::builder::TypedValueParser<Value = Platform> {
    PossibleValuesParser::new(Platform::ALL.map(Platform::as_str))
        .try_map(|name| name.to_uppercase().parse::<Platform>())
}

/// Does what the command says.
pub(crate) async fn run(args: PushArgs) -> anyhow::Result<()> {
    match args.command {
        Some(PushCommand::Show { id, json, ingest }) => show(&Ingest::new(&ingest)?, id, json).await,
        None => post(&Ingest::new(&args.ingest)?, args.push).await,
    }
}

async fn post(ingest: &Ingest, args: PostArgs) -> anyhow::Result<()> {
    let missing = "invariant: clap has seen to it that it is given";
    let request = PushRequest {
        platform: args.platform.context(missing)?.as_str().to_owned(),
        message_prototype_key: args.prototype,
        push_key: args.push_key.context(missing)?,
        message: args.message.context(missing)?,
        cron_expression: args.cron,
    };
    let answer = ingest.post(&request, args.idempotency_key.as_deref()).await?;
    ingest::tell(
        &answer,
        "push",
        "it was handed in before with this idempotency key; nothing new was stored",
    )
}

async fn show(ingest: &Ingest, id: Uuid, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&ingest.get::<Value>(&format!("/push/{id}"), &()).await?);
    }
    let push = ingest.find(id).await?;
    let mut table = Table::record("push", &push.id.to_string());
    for (name, value) in properties(&push) {
        table.add_row([name, value.as_str()]);
    }
    output::result(table)?;
    if push.history.is_empty() {
        return Ok(());
    }
    let mut attempts = output::table([
        Column::whole("attempt"),
        Column::whole("started").spare(2),
        Column::whole("took").spare(1),
        Column::whole("status"),
        Column::prose("error"),
    ]);
    for attempt in &push.history {
        attempts.add_row([
            attempt.number.to_string(),
            attempt.started_at.to_rfc3339(),
            attempt
                .millis
                .map(|millis| format!("{millis} ms"))
                .unwrap_or_default(),
            attempt.status.clone(),
            error_of(attempt),
        ]);
    }
    output::result(attempts)?;
    Ok(())
}

fn properties(push: &Push) -> Vec<(&'static str, String)> {
    let rows = [
        ("status", Some(push.status.to_string())),
        ("explanation", Some(push.explanation.clone())),
        ("reason", push.reason.clone()),
        ("platform", Some(push.platform.clone())),
        ("prototype", push.message_prototype_key.clone()),
        ("cron", push.cron_expression.clone()),
        ("created", Some(push.created_at.to_rfc3339())),
        ("next attempt", push.next_attempt_at.map(|at| at.to_rfc3339())),
        ("finished", push.finished_at.map(|at| at.to_rfc3339())),
        ("attempts", Some(push.attempts.to_string())),
    ];
    let given = |(name, value): (_, Option<_>)| Some((name, value?));
    rows.into_iter().filter_map(given).collect()
}

fn error_of(attempt: &Attempt) -> String {
    let code = attempt.swrve_error_code.map(|code| code.to_string());
    let parts = [
        attempt.error_type.map(|kind| kind.as_str().to_owned()),
        code,
        attempt.swrve_error_message.clone(),
        attempt.other_error.clone(),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

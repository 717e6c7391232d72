//! `postrider event`: handing in one event, and looking at one.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::file;
use crate::ingest::{self, Event, EventRequest, Ingest, IngestArgs, Missed};
use crate::output::{self, Column, Table};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  postrider event send --type contact.deleted --reseller acme --data '{\"contact\": {\"id\": \"contact-42\"}}'
  postrider event send --type domain.created --reseller acme --data @event.json --event-id order-4711
  postrider event show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")]
pub(crate) enum EventCommand {
    /// Hands in an event; standard output is its identifier.
    Send(SendArgs),
    /// Shows an event and where each of its notifications stands.
    Show {
        /// Its identifier, as `postrider event send` printed it.
        id: Uuid,
        /// As JSON, just as GET /events/{id} answers.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        ingest: IngestArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// An event type of the catalogue; see `postrider event-types list`.
    #[arg(long = "type", value_name = "TYPE")]
    event_type: String,
    /// Whose event it is.
    #[arg(long, value_name = "ID")]
    reseller: String,
    /// What happened: a JSON object, or @FILE to read it from there (@- for standard input).
    #[arg(long, value_name = "JSON")]
    data: String,
    /// When it happened, as RFC 3339 has it; now when not given.
    #[arg(long, value_name = "TIME")]
    occurred_at: Option<String>,
    /// A name of your own, which receivers see too: the same event with the same name is stored once.
    #[arg(long, value_name = "ID")]
    event_id: Option<String>,
    /// Makes it safe to repeat the command: the same key and event are stored once.
    #[arg(long)]
    idempotency_key: Option<String>,
    #[command(flatten)]
    ingest: IngestArgs,
}

/// Does what the command says.
pub(crate) async fn run(command: EventCommand) -> anyhow::Result<()> {
    match command {
        EventCommand::Send(args) => send(args).await,
        EventCommand::Show { id, json, ingest } => show(&Ingest::new(&ingest)?, id, json).await,
    }
}

async fn send(args: SendArgs) -> anyhow::Result<()> {
    let ingest = Ingest::new(&args.ingest)?;
    let data = match args.data.strip_prefix('@') {
        Some(path) => file::read(path)?,
        None => args.data,
    };
    let event = EventRequest {
        event_type: args.event_type,
        reseller_id: args.reseller,
        data: RawValue::from_string(data.trim().to_owned()).context("the data is not JSON")?,
        occurred_at: args.occurred_at,
        event_id: args.event_id,
    };
    let answer = ingest.post_event(&event, args.idempotency_key.as_deref()).await?;
    ingest::tell(
        &answer,
        "event",
        "it was handed in before; nothing new was stored",
    )
}

async fn show(ingest: &Ingest, id: Uuid, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&ingest.get::<Value>(&format!("/events/{id}"), &()).await?);
    }
    let event = ingest.find_event(id).await?;
    let mut table = Table::record("event", &event.id.to_string());
    for (name, value) in properties(&event) {
        table.add_row([name, value.as_str()]);
    }
    output::result(table)?;
    if event.notifications.is_empty() {
        return show_missed(event.missed);
    }
    let mut notifications = output::table([
        Column::whole("subscription"),
        Column::whole("to").spare(2),
        Column::whole("status"),
        Column::whole("attempts").spare(1),
        Column::prose("explanation"),
    ]);
    for notification in event.notifications {
        notifications.add_row([
            notification.subscription_id.to_string(),
            notification.url,
            notification.status.to_string(),
            notification.attempts.to_string(),
            notification.explanation,
        ]);
    }
    output::result(notifications)?;
    Ok(())
}

/// Whom an event missed that became nothing.
fn show_missed(missed: Option<Vec<Missed>>) -> anyhow::Result<()> {
    let Some(missed) = missed else { return Ok(()) };
    if missed.is_empty() {
        output::note("its reseller had no subscription when it was accepted");
        return Ok(());
    }
    let mut table = output::table([Column::whole("subscription"), Column::prose("explanation")]);
    for one in missed {
        table.add_row([one.subscription_id.to_string(), one.explanation]);
    }
    output::result(table)?;
    Ok(())
}

fn properties(event: &Event) -> [(&'static str, String); 6] {
    [
        ("type", event.event_type.clone()),
        ("reseller", event.reseller_id.clone()),
        ("event id", event.event_id.clone()),
        ("occurred", event.occurred_at.to_rfc3339()),
        ("accepted", event.created_at.to_rfc3339()),
        ("notifications", event.notifications.len().to_string()),
    ]
}

//! `postrider event`: handing in one event, looking at one, and finding some.

use std::time::Duration;

use anyhow::{Context as _, bail};
use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use domain::push::PushStatus;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::commands::outcome::Within;
use crate::commands::search::{self, EventListArgs};
use crate::file;
use crate::ingest::{self, Event, EventRequest, Ingest, IngestArgs, Missed};
use crate::output::{self, Column, Form, FormArgs, Table};
use crate::progress::Progress;
use crate::web;

/// How often an event is looked at whose notifications are waited for.
const POLL: Duration = Duration::from_millis(500);

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  postrider event send --type contact.deleted --reseller acme --data '{\"contact\": {\"id\": \"contact-42\"}}'
  postrider event send --type domain.created --reseller acme --data @event.json --event-id order-4711
  postrider event send --type domain.created --reseller acme --data @event.json --wait --within 1m
  postrider event show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider event show order-4711 --reseller acme
  postrider event list --value example.org")]
pub(crate) enum EventCommand {
    /// Hands in an event; standard output is its identifier.
    Send(SendArgs),
    /// Lists events by a value in their data, those included that matched no subscription; over the operator API.
    #[command(visible_alias = "ls")]
    List(Box<EventListArgs>),
    /// Shows an event and where each of its notifications stands.
    Show {
        /// Its identifier, as `postrider event send` printed it; with --reseller your own name of it (`--event-id`).
        id: String,
        /// Whose event it is, when you give your own name of it.
        #[arg(long, value_name = "ID")]
        reseller: Option<String>,
        #[command(flatten)]
        form: FormArgs,
        #[command(flatten)]
        ingest: IngestArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// An event type of the catalogue; see `postrider event-types list`.
    #[arg(long = "type", alias = "event-type", value_name = "TYPE")]
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
    /// Waits until each of its notifications has ended; exit code 1 when it became none, or not all are SENT.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    within: Within,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    ingest: IngestArgs,
}

/// Does what the command says.
pub(crate) async fn run(command: EventCommand) -> anyhow::Result<()> {
    match command {
        EventCommand::Send(args) => send(args).await,
        EventCommand::List(args) => search::events(&args).await,
        EventCommand::Show {
            id,
            reseller,
            form,
            ingest,
        } => show(&Ingest::new(&ingest)?, (&id, reseller.as_deref()), form.form()).await,
    }
}

async fn send(args: SendArgs) -> anyhow::Result<()> {
    let ingest = Ingest::new(&args.ingest)?;
    let data = match args.data.strip_prefix('@') {
        Some(path) => file::read(path)?,
        None => args.data,
    };
    let reseller = args.reseller.clone();
    let event = EventRequest {
        event_type: args.event_type,
        reseller_id: args.reseller,
        data: RawValue::from_string(data.trim().to_owned()).context("the data is not JSON")?,
        occurred_at: args.occurred_at,
        event_id: args.event_id,
    };
    let answer = ingest.post_event(&event, args.idempotency_key.as_deref()).await?;
    let id = ingest::accepted(
        &answer,
        "event",
        "it was handed in before; nothing new was stored",
    )?;
    let form = args.form.form();
    let is_told_by_id = matches!(form, Form::Table | Form::Name);
    if is_told_by_id {
        output::result(id)?;
    }
    if form == Form::Table {
        note_unheard(&ingest, id, &reseller).await;
    }
    let was_delivered = !args.wait || {
        let not_come = [
            format!("not all notifications of the event {id} have ended"),
            format!("`postrider event show {id}` shows where each stands"),
        ];
        let waiting = until_ended(&ingest, id);
        args.within.limit(waiting, not_come).await?
    };
    if !is_told_by_id {
        show(&ingest, (&id.to_string(), None), form).await?;
    }
    if !was_delivered {
        bail!(
            "the event became no notification, or not all of them were delivered; `postrider event show {id}` says why"
        );
    }
    Ok(())
}

/// Waits until each notification of an event has ended, and says whether there are some and all were delivered.
async fn until_ended(ingest: &Ingest, id: Uuid) -> anyhow::Result<bool> {
    let progress = Progress::waiting("waiting until its notifications have ended");
    loop {
        let event: Event = ingest.get(&format!("/events/{id}"), &()).await?;
        let statuses = || event.notifications.iter().map(|it| it.status);
        let has_ended =
            |it: &PushStatus| matches!(it, PushStatus::Sent | PushStatus::Failed | PushStatus::GivenUp);
        let waiting = statuses().filter(|it| !has_ended(it)).count();
        if waiting == 0 {
            let all_sent = statuses().all(|it| it == PushStatus::Sent);
            return Ok(all_sent && !event.notifications.is_empty());
        }
        progress.say(&format!("{waiting} still wait"));
        tokio::time::sleep(POLL).await;
    }
}

/// Says when the reseller has no subscription: any name is accepted, a mistyped one too. The event is stored, whether or not this is found out.
async fn note_unheard(ingest: &Ingest, id: Uuid, reseller: &str) {
    let Ok(event) = ingest.get::<Event>(&format!("/events/{id}"), &()).await else {
        return;
    };
    if event.notifications.is_empty() && event.missed.is_some_and(|missed| missed.is_empty()) {
        output::note(format_args!(
            "note: the reseller {} has no subscription, so that the event goes to no endpoint",
            output::harmless(reseller)
        ));
    }
}

async fn show(ingest: &Ingest, (id, reseller): (&str, Option<&str>), form: Form) -> anyhow::Result<()> {
    let document: Value = match (reseller, web::identifier(id)) {
        (Some(reseller), _) => ingest.find_event_of(reseller, id).await?,
        (None, Some(id)) => ingest.get(&format!("/events/{id}"), &()).await?,
        (None, None) => bail!(
            "{id:?} is no identifier such as 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d; if it is your own name of the event, say whose event it is \
             with --reseller"
        ),
    };
    if form == Form::Json {
        return output::json(&document);
    }
    let event: Event = serde_json::from_value(document)?;
    let mut table = Table::record("event", &event.id.to_string());
    for (name, value) in properties(&event) {
        table.add_row([name, output::harmless(&value).as_str()]);
    }
    form.table(&table)?;
    if !form.is_for_people() {
        return Ok(());
    }
    if event.notifications.is_empty() {
        return show_missed(event.missed, form);
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
    form.table(&notifications)
}

/// Whom an event missed that became nothing.
fn show_missed(missed: Option<Vec<Missed>>, form: Form) -> anyhow::Result<()> {
    let Some(missed) = missed else { return Ok(()) };
    if missed.is_empty() {
        output::note("its reseller had no subscription when it was accepted");
        return Ok(());
    }
    let mut table = output::table([Column::whole("subscription"), Column::prose("explanation")]);
    for one in missed {
        table.add_row([one.subscription_id.to_string(), one.explanation]);
    }
    form.table(&table)
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn properties(event: &Event) -> [(&'static str, String); 6] {
    [
        ("type", event.event_type.clone()),
        ("reseller", event.reseller_id.clone()),
        ("event id", event.event_id.clone()),
        ("occurred", time(event.occurred_at)),
        ("accepted", time(event.created_at)),
        ("notifications", event.notifications.len().to_string()),
    ]
}

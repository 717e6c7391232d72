//! `postrider event-types`: the catalogue of event types.

use anyhow::{Context as _, bail};
use chrono::SecondsFormat;
use clap::Subcommand;
use config::Sources;
use domain::clock::{Clock as _, SystemClock};
use event_schema::Definition;
use serde::Deserialize;
use serde_json::{Value, json};
use store::webhook::{EventType, NewEventType};

use super::database::{Database, by_hand, lacks_only_the_database, tell_actor};
use crate::api::Api;
use crate::file;
use crate::operator::OperatorArgs;
use crate::output::{self, Column, Form, FormArgs, Table};
use crate::shown;
use crate::web::path;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  postrider event-types list
  postrider event-types show domain.created > type.json
  postrider event-types put type.json --note 'the registry sends a second name server'
  postrider event-types retire domain.updated --note 'the registry does not tell it any more'")]
pub(crate) enum EventTypesCommand {
    /// Lists the catalogue, retired types included.
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        form: FormArgs,
    },
    /// Shows one event type as JSON, in the form that `put` reads.
    Show {
        /// Its name.
        name: String,
    },
    /// Adds an event type, or replaces what the catalogue says of it; one that was retired is in use again.
    Put {
        /// JSON file with name, description, attributes, example, variants (none when it leaves them out) and, if payloads
        /// are to be checked, schema and unknownFields (REFUSE when it leaves them out); - for standard input.
        file: String,
        /// Why; kept in the audit log.
        #[arg(long)]
        note: Option<String>,
    },
    /// Retires an event type: new events of it are refused some seconds later. What `show` prints brings it back with `put`.
    ///
    /// Where no database is configured it asks the operator API, with a key of the role admin, which the audit log then names.
    Retire {
        /// Its name.
        name: String,
        /// Why; kept in the audit log. The operator API asks for it.
        #[arg(long)]
        note: Option<String>,
        #[command(flatten)]
        operator: OperatorArgs,
    },
}

/// What helps those who cannot reach the database.
const WITHOUT_DATABASE: &str = "the catalogue is in the database; without DATABASE_URL, `postrider event-types retire` works with a key of the role admin \
     (OPERATOR_KEY or --key), `GET /event-types` of the operator API lists the catalogue, and `PUT /event-types/NAME` of the ingest \
     API puts a type into it";

/// What becomes of the events of a type that is retired.
const REFUSED: &str = "running services refuse new events of it within seconds. What was accepted is sent.";

/// What a file says.
#[derive(Deserialize)]
struct Named {
    name: String,
    #[serde(flatten)]
    definition: Definition,
}

/// Does what the command says.
pub(crate) async fn run(sources: &Sources, command: EventTypesCommand) -> anyhow::Result<()> {
    let database = match (Database::open_migrated(sources).await, &command) {
        (Err(error), EventTypesCommand::Retire { name, note, operator })
            if lacks_only_the_database(&error) && operator.has_key() =>
        {
            return retire_by_key(&operator.connect()?, name, note.as_deref()).await;
        }
        (Err(error), _) if lacks_only_the_database(&error) => return Err(error.context(WITHOUT_DATABASE)),
        (database, _) => database?,
    };
    match command {
        EventTypesCommand::List { form } => list(&database, form.form()).await,
        EventTypesCommand::Show { name } => show(&database, &name).await,
        EventTypesCommand::Put { file, note } => put(&database, &file, note.as_deref()).await,
        EventTypesCommand::Retire { name, note, operator } => {
            if operator.has_key() {
                tell_actor();
            }
            retire(&database, &name, note.as_deref()).await
        }
    }
}

async fn list(database: &Database, form: Form) -> anyhow::Result<()> {
    let types = database
        .store
        .list_event_types()
        .await
        .with_context(|| database.failure("read the event types from"))?;
    form.print(&json!({ "items": types }), || table_of(&types))
}

fn table_of(types: &[EventType]) -> Table {
    let mut table = output::table([
        Column::whole("event type"),
        Column::prose("description").spare(1),
        Column::whole("has a schema"),
        Column::whole("retired"),
    ]);
    for event_type in types {
        table.add_row([
            event_type.name.clone(),
            output::harmless(&event_type.description),
            if event_type.schema.is_some() { "yes" } else { "no" }.to_owned(),
            event_type
                .retired_at
                .map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
                .unwrap_or_default(),
        ]);
    }
    table
}

async fn show(database: &Database, name: &str) -> anyhow::Result<()> {
    output::json(&json!(find(database, name).await?))
}

async fn find(database: &Database, name: &str) -> anyhow::Result<EventType> {
    let found = database
        .store
        .find_event_type(name)
        .await
        .with_context(|| database.failure("read the event type from"))?;
    found.with_context(|| format!("the catalogue has no event type {name:?}"))
}

async fn put(database: &Database, path: &str, note: Option<&str>) -> anyhow::Result<()> {
    let Named { name, definition } = serde_json::from_str(&file::read(path)?)
        .with_context(|| format!("{path} does not describe an event type"))?;
    let findings = definition.findings(&name);
    if !findings.is_empty() {
        let findings: Vec<String> = findings
            .into_iter()
            .map(|finding| format!("{} {}", finding.field, finding.detail))
            .collect();
        bail!("the event type cannot be accepted: {}", findings.join("; "));
    }
    let event_type = NewEventType {
        name,
        description: definition.description,
        attributes: serde_json::to_value(&definition.attributes)?,
        example: definition.example,
        variants: serde_json::to_value(&definition.variants)?,
        schema: definition.schema,
        unknown_fields: definition.unknown_fields,
    };
    let new = database
        .store
        .put_event_type(&event_type, by_hand(SystemClock.now(), note))
        .await
        .with_context(|| database.failure("store the event type in"))?;
    output::note(format_args!(
        "{} is {} the catalogue; running services see it within seconds",
        event_type.name,
        if new { "new in" } else { "replaced in" }
    ));
    Ok(())
}

async fn retire(database: &Database, name: &str, note: Option<&str>) -> anyhow::Result<()> {
    let retired = database
        .store
        .retire_event_type(name, by_hand(SystemClock.now(), note))
        .await
        .with_context(|| database.failure("retire the event type in"))?;
    if !retired {
        let since = find(database, name).await?.retired_at;
        let since = since.map(|at| at.to_rfc3339()).unwrap_or_default();
        bail!(
            "the event type {name} has been retired since {since}; to bring it back: postrider event-types show {name} | postrider event-types put -"
        );
    }
    output::note(format_args!(
        "{name} is retired; {REFUSED} To bring it back: postrider event-types show {name} | postrider event-types put -"
    ));
    Ok(())
}

/// Retires it over the operator API, which tells one that was retired before only by its time.
async fn retire_by_key(api: &Api, name: &str, note: Option<&str>) -> anyhow::Result<()> {
    let place = format!("{}/retire", path(&["event-types", name]));
    let retired: Value = api.post(&place, &json!({ "note": note })).await?;
    output::note(format_args!(
        "{name} is retired since {}, says the operator API at {}; {REFUSED} To bring it back: `PUT /event-types/{name}` of the ingest API, with \
         what `GET /event-types/{name}` of the operator API shows",
        shown::cell(&retired, "/retiredAt"),
        api.url(""),
    ));
    Ok(())
}

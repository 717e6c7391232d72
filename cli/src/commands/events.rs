//! `postrider events`: which notifications there are, what they hold, and what they look like.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::catalogue::{Catalogue, EventType};
use crate::output::{self, Column, FormArgs, JsonArgs, Table};
use crate::portal::{Portal, PortalArgs};
use crate::pretty;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
The catalogue is built in; with a key of a reseller (RESELLER_KEY) it is that of the installation.

Examples:
  postrider events list
  postrider events show domain.created
  postrider events show domain.created --variant several-years --json
  postrider events show domain.created --schema")]
pub(crate) enum EventsCommand {
    /// Lists event types.
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Shows an event type: its attributes, its variants and its data.
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only types that hold this text, such as domain. or transfer.
    filter: Option<String>,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    from: From,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Its name.
    event_type: String,
    /// Shows the data of this variant instead of the example.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Shows the JSON Schema of its data alone.
    #[arg(long, conflicts_with = "variant")]
    schema: bool,
    // Of a variant it is the data alone.
    #[command(flatten)]
    form: JsonArgs,
    #[command(flatten)]
    from: From,
}

#[derive(Debug, Args)]
struct From {
    /// Asks no portal, whether there is a key or not.
    #[arg(long)]
    built_in: bool,
    #[command(flatten)]
    portal: PortalArgs,
}

impl From {
    async fn catalogue(&self) -> anyhow::Result<Catalogue> {
        if self.built_in || !self.portal.has_key() {
            return Catalogue::built_in();
        }
        Portal::connect(&self.portal)?.catalogue().await
    }
}

/// Does what the command says.
pub(crate) async fn run(command: EventsCommand) -> anyhow::Result<()> {
    match command {
        EventsCommand::List(args) => list(&args).await,
        EventsCommand::Show(args) => show(&args).await,
    }
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let mut catalogue = args.from.catalogue().await?;
    if let Some(filter) = &args.filter {
        catalogue
            .types
            .retain(|event_type| event_type.name.contains(filter.as_str()));
    }
    if catalogue.types.is_empty() {
        output::note("no event type matches");
    }
    let form = args.form.form();
    form.print(&json!({ "items": catalogue.types }), || {
        table_of(&catalogue.types)
    })
}

fn table_of(types: &[EventType]) -> Table {
    let mut table = output::table([
        Column::whole("event type"),
        Column::prose("description"),
        Column::whole("variants"),
    ]);
    for event_type in types {
        table.add_row([
            event_type.name.clone(),
            output::harmless(&event_type.description),
            event_type.variants.len().to_string(),
        ]);
    }
    table
}

async fn show(args: &ShowArgs) -> anyhow::Result<()> {
    let catalogue = args.from.catalogue().await?;
    let event_type = catalogue.find(&args.event_type)?;
    if args.schema {
        let schema = event_type.schema.as_ref();
        let name = output::harmless(&event_type.name);
        return output::json(schema.with_context(|| format!("{name} has no schema"))?);
    }
    let data = event_type.data(args.variant.as_deref())?;
    if args.form.is_json() {
        return match args.variant {
            Some(_) => output::json(data),
            None => output::json(&json!(event_type)),
        };
    }
    if args.variant.is_none() {
        describe(event_type)?;
    }
    output::result(pretty::json(&data.to_string()))?;
    Ok(())
}

fn describe(event_type: &EventType) -> anyhow::Result<()> {
    output::result(format_args!(
        "{}: {}\n",
        event_type.name,
        output::harmless(&event_type.description)
    ))?;
    let mut attributes = output::table([
        Column::whole("attribute"),
        Column::prose("type"),
        Column::whole("always"),
        Column::prose("description"),
    ]);
    for attribute in &event_type.attributes {
        attributes.add_row([
            output::harmless(&attribute.name),
            output::harmless(&attribute.kind),
            if attribute.required { "yes" } else { "no" }.to_owned(),
            output::harmless(&attribute.description),
        ]);
    }
    output::result(attributes)?;
    if !event_type.variants.is_empty() {
        let mut variants = output::table([Column::whole("--variant"), Column::prose("description")]);
        for variant in &event_type.variants {
            variants.add_row([
                output::harmless(&variant.name),
                output::harmless(&variant.description),
            ]);
        }
        output::result(format_args!("\n{variants}"))?;
    }
    output::result("\nexample of its data:\n")?;
    Ok(())
}

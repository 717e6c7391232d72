//! `postrider find`: what an identifier is of.

use clap::Args;
use serde_json::Value;

use crate::operator::Common;
use crate::output::{self, Column, Form};
use crate::shown::{self, ShownColumn};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider find 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d     what is this the identifier of?
  postrider find order-17 --reseller acme                 an event, by what its caller called it
  postrider find order-17                                 the same, whosever it is
  postrider find example.org                              events about it in the last days
  postrider find https://hooks.acme.example/postrider     the subscription with this endpoint
  postrider find 463B3209                                 a device's pushes, or a reseller
  postrider find /push/019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d  a push, by where it is looked up")]
pub(crate) struct FindArgs {
    /// An identifier of a push, an event, a notification, a dead letter, a subscription, a job, an API key or a quota request; the path or address at which a
    /// push or event is looked up, such as /push/ID; a reseller; a device's push key; the URL of an endpoint; an event type; the name of an API key; the `eventId` of an event;
    /// what is none of these, a value in the data of the newest events.
    text: String,
    /// Whose event it is, when the text is the `eventId` that its caller gave.
    #[arg(long, value_name = "RESELLER")]
    reseller: Option<String>,
    #[command(flatten)]
    common: Common,
}

const COLUMNS: [ShownColumn; 4] = [
    (Column::whole("kind"), "/kind"),
    (Column::whole("id"), "/id"),
    (Column::whole("state"), "/state"),
    (Column::prose("headline").spare(1), "/headline"),
];

/// Does what the command says.
pub(crate) async fn run(args: &FindArgs) -> anyhow::Result<()> {
    let query = [("q", Some(&args.text)), ("reseller", args.reseller.as_ref())];
    let query: Vec<_> = query.into_iter().filter(|(_, value)| value.is_some()).collect();
    let document: Value = args.common.operator.connect()?.get("/search", &query).await?;
    let form = args.common.form();
    if form == Form::Json {
        return output::json(&document);
    }
    let tried = document["tried"].as_array().into_iter().flatten();
    let tried: Vec<&str> = tried.filter_map(Value::as_str).collect();
    let since = match document["valuesSince"].as_str() {
        Some(since) => format!(
            "; as a value in events since {}, further back `postrider event list --value` looks",
            output::harmless(since)
        ),
        None => String::new(),
    };
    let nothing = format!(
        "nothing has this identifier; looked for: {}{since}",
        tried.join(", ")
    );
    shown::print(&document, form, COLUMNS, &nothing)
}

//! `postrider dead-letters show`.

use std::fmt::Write as _;

use clap::Args;
use serde_json::Value;
use uuid::Uuid;

use crate::commands::push::answer;
use crate::operator::OperatorArgs;
use crate::output::{self, Column, FormArgs, Table};
use crate::shown::{self, cell};

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The dead letter's identifier, from `postrider dead-letters list`.
    id: Uuid,
    /// Only the command that repeats the request, to be copied or piped into a file.
    #[arg(long, conflicts_with_all = ["json", "output"])]
    curl: bool,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    operator: OperatorArgs,
}

/// What is shown of a dead letter, in this order.
const FIELDS: [(&str, &str); 19] = [
    ("dead letter", "id"),
    ("state", "state"),
    ("lane", "lane"),
    ("reason", "reason"),
    ("fingerprint", "fingerprint"),
    ("target", "target"),
    ("detail", "detail"),
    ("push", "pushId"),
    ("notification", "notificationId"),
    ("event", "event"),
    ("subscription", "subscriptionId"),
    ("reseller", "resellerId"),
    ("event type", "eventType"),
    ("prototype", "prototype"),
    ("trace", "traceId"),
    ("written", "createdAt"),
    ("resolved", "resolvedAt"),
    ("resolved by", "resolvedBy"),
    ("note", "note"),
];

/// Shows one dead letter.
pub(crate) async fn run(args: &ShowArgs) -> anyhow::Result<()> {
    let path = format!("/dead-letters/{}", args.id);
    let document: Value = args.operator.connect()?.get(&path, &()).await?;
    let form = args.form.form();
    if !form.is_for_people() {
        return form.print(&document, || record(&document));
    }
    let curl = document["curl"].as_str();
    if args.curl {
        let curl = curl.ok_or_else(|| anyhow::anyhow!(no_request(&document)))?;
        return Ok(output::result(curl)?);
    }
    output::result(story(&document))?;
    let attempts = shown::items(&document["history"]["attempts"]);
    if !attempts.is_empty() {
        form.table(&attempts_of(attempts))?;
    }
    if let Some(curl) = curl {
        // A command is text to be copied: what it quotes has to stay as it is.
        output::result(format!(
            "\nThe request again, with the variables that it names:\n{curl}"
        ))?;
    }
    Ok(())
}

/// Why there is no command.
fn no_request(document: &Value) -> &'static str {
    let fingerprint = document["fingerprint"].as_str().unwrap_or_default();
    if fingerprint.starts_with("prototype-key/") {
        "there is no request to repeat: without a push key none was made"
    } else {
        "there is no request to repeat: what the dead letter is about is not stored any more"
    }
}

fn record(document: &Value) -> Table {
    let mut record = Table::record("dead letter", &cell(document, "/id"));
    for (name, field) in FIELDS.into_iter().skip(1) {
        let value = cell(document, &format!("/{field}"));
        if !value.is_empty() {
            record.add_row([name, value.as_str()]);
        }
    }
    record
}

fn story(document: &Value) -> String {
    let mut story = String::new();
    for (name, field) in FIELDS {
        let value = cell(document, &format!("/{field}"));
        if !value.is_empty() {
            let _ = writeln!(story, "{name:13} {value}");
        }
    }
    let history = &document["history"];
    if history.is_object() {
        let reason = history["reason"].as_str();
        let reason = reason.map_or(String::new(), |reason| format!(" ({})", output::harmless(reason)));
        let _ = writeln!(
            story,
            "{:13} {}{reason}",
            "stands now as",
            cell(&history["status"], "")
        );
        if let Some(at) = history["nextAttemptAt"].as_str() {
            let _ = writeln!(story, "{:13} {}", "next attempt", super::seconds(at));
        }
    }
    let broker = &document["broker"];
    if broker.is_object() {
        for (name, field) in [
            ("broker said", "reason"),
            ("queue", "queue"),
            ("deaths", "count"),
            ("body", "body"),
        ] {
            if !broker[field].is_null() {
                let _ = writeln!(story, "{name:13} {}", cell(&broker[field], ""));
            }
        }
    }
    for other in shown::items(&document["otherLetters"]) {
        let _ = writeln!(story, "{:13} {}", "see also", cell(other, ""));
    }
    for event in shown::items(&history["events"]) {
        let at = event["at"].as_str().unwrap_or_default();
        let _ = writeln!(story, "{:13} {}", super::seconds(at), cell(&event["text"], ""));
    }
    story.truncate(story.trim_end().len());
    story
}

fn attempts_of(attempts: &[Value]) -> Table {
    let mut table = output::table([
        Column::whole("attempt"),
        Column::whole("began").spare(2),
        Column::whole("took").spare(1),
        Column::whole("result"),
        Column::prose("answer"),
    ]);
    for attempt in attempts {
        let took = attempt["millis"]
            .as_i64()
            .map_or_else(String::new, |millis| format!("{millis} ms"));
        let kind = attempt["errorType"].as_str().map(str::to_owned);
        let kind = kind.unwrap_or_else(|| cell(&attempt["status"], ""));
        let result = match answer(attempt["responseStatus"].as_i64(), attempt["code"].as_i64()) {
            Some(answer) => format!("{kind} {answer}"),
            None => kind,
        };
        let said = [&attempt["error"], &attempt["response"]];
        let said: Vec<String> = said
            .into_iter()
            .filter(|value| value.as_str().is_some_and(|text| !text.is_empty()))
            .map(|value| super::shortened(value.as_str().unwrap_or_default(), 400))
            .collect();
        table.add_row([
            attempt["number"].to_string(),
            super::seconds(attempt["startedAt"].as_str().unwrap_or_default()),
            took,
            output::harmless(&result),
            said.join("\n"),
        ]);
    }
    table
}

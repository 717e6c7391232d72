//! The configuration as text: the effective values without secrets, and the reference of all keys.
//!
//! It deliberately prints nothing; the CLI does.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::Origin;
use crate::layers::{Entry, Layers};
use crate::reader::Reader;
use crate::yaml::{Content, Node};
use crate::{Secret, read, urls};

/// Keys whose value is a URL that may hold a password, or several.
const SECRET_URLS: [&str; 5] = [
    "database.url",
    "amqp.url",
    "mail.smtpUrl",
    "swrve.url",
    "telemetry.otlpEndpoint",
];
/// Keys of whose value nothing may be shown.
const SECRETS: [&str; 2] = ["reseller.secrets.key", "reseller.secrets.previousKeys"];

/// The effective values as YAML. JSON scalars and mappings are YAML too, which settles all quoting.
pub(crate) fn redacted(layers: &Layers) -> String {
    let mut yaml = String::new();
    let mut open: Vec<&str> = Vec::new();
    for key in layers.keys() {
        let mut sections: Vec<&str> = key.split('.').collect();
        let name = sections.pop().unwrap_or_default();
        let shared = open
            .iter()
            .zip(&sections)
            .take_while(|(one, other)| one == other)
            .count();
        for (depth, section) in sections.iter().enumerate().skip(shared) {
            let _ = writeln!(yaml, "{}{section}:", indent(depth));
        }
        let entry = layers.entry(key);
        let _ = writeln!(
            yaml,
            "{}{name}: {}{}",
            indent(sections.len()),
            shown(key, entry),
            note(&entry.origin)
        );
        open = sections;
    }
    yaml
}

/// A Markdown table of every key with its default and what it accepts, in the order of `config/default.yaml`.
pub fn reference() -> String {
    let mut reader = Reader::new(Layers::defaults());
    // Only what each key accepts is of interest; the required keys are missing, of course.
    let _ = read::config(&mut reader);
    let mut table = String::from("| key | default | accepts |\n|---|---|---|\n");
    for key in reader.layers().keys() {
        let default = json(&reader.layers().entry(key).value);
        let accepted = reader.accepted().get(key.as_str()).map_or("", String::as_str);
        let _ = writeln!(table, "| `{key}` | `{default}` | {accepted} |");
    }
    table
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth)
}

fn note(origin: &Origin) -> String {
    match origin {
        Origin::Default => String::new(),
        other => format!("  # {other}"),
    }
}

fn shown(key: &str, entry: &Entry) -> Value {
    match json(&entry.value) {
        Value::Null => Value::Null,
        value if SECRETS.contains(&key) => hidden(value),
        Value::String(url) if SECRET_URLS.contains(&key) => urls::masked(&url).into(),
        // Only mappings with free names have more levels, and what those hold are push keys.
        Value::Object(entries) => hidden(Value::Object(entries)),
        value => value,
    }
}

fn hidden(value: Value) -> Value {
    match value {
        Value::Object(entries) => entries
            .into_iter()
            .map(|(name, value)| (name, hidden(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(hidden).collect(),
        _ => Secret::new("").to_string().into(),
    }
}

fn json(node: &Node) -> Value {
    match &node.content {
        Content::Scalar(value) => value.clone(),
        Content::Map(entries) => Value::Object(
            entries
                .iter()
                .map(|(name, child)| (name.clone(), json(child)))
                .collect::<Map<_, _>>(),
        ),
        Content::List(items) => Value::Array(items.iter().map(json).collect()),
    }
}

//! The configuration as text: the effective values without secrets, and the reference of all keys.
//!
//! It deliberately prints nothing; the CLI does.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::Origin;
use crate::layers::Layers;
use crate::reader::Reader;
use crate::section::Section as _;
use crate::yaml::{Content, Node};
use crate::{Config, Secret, urls};

/// The effective values as YAML. JSON scalars and mappings are YAML too, which settles all quoting.
pub(crate) fn redacted(reader: &Reader) -> String {
    let layers = reader.layers();
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
            shown(
                &entry.value,
                reader.accepted(key).is_none_or(|accepted| accepted.is_secret)
            ),
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
    let _ = Config::read(&mut reader, "");
    let mut table = String::from("| key | default | accepts |\n|---|---|---|\n");
    for key in reader.layers().keys() {
        let default = json(&reader.layers().entry(key).value);
        let accepted = reader.accepted(key).map_or("", |accepted| &accepted.words);
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

fn shown(value: &Node, is_secret: bool) -> Value {
    match json(value) {
        // Of a secret that is no URL nothing is left.
        Value::String(text) if is_secret || text.contains("://") => urls::masked(&text).into(),
        value @ (Value::Object(_) | Value::Array(_)) if is_secret => hidden(value),
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

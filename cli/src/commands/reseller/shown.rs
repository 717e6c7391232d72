//! Documents as tables. Everything in them may be a stranger's text.

use serde_json::Value;

use crate::output::{self, Column, Table};

/// What is shown in a row of a record: its name, and where the value is (RFC 6901).
pub(super) type Shown = (&'static str, &'static str);
/// What is shown in a column of a list, and where the value is.
pub(super) type ShownColumn = (Column, &'static str);

/// A value as one reads it; empty for null.
pub(super) fn cell(document: &Value, pointer: &str) -> String {
    let Some(value) = document.pointer(pointer) else {
        return String::new();
    };
    match value {
        Value::Null => String::new(),
        Value::String(text) => output::harmless(text),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| cell(item, "")).collect();
            items.join(", ")
        }
        other => output::harmless(&other.to_string()),
    }
}

/// One document: a row for each value that it has.
pub(super) fn record<const ROWS: usize>(title: &'static str, document: &Value, rows: [Shown; ROWS]) -> Table {
    let mut table = Table::record(title, &cell(document, "/id"));
    for (head, pointer) in rows {
        let shown = cell(document, pointer);
        if !shown.is_empty() {
            table.add_row([head, shown.as_str()]);
        }
    }
    table
}

/// A list: a row for each document.
pub(super) fn list<const COLUMNS: usize>(items: &Value, columns: [ShownColumn; COLUMNS]) -> Table {
    let (heads, pointers): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let mut table = output::table(heads);
    for item in items.as_array().into_iter().flatten() {
        table.add_row(pointers.iter().map(|pointer| cell(item, pointer)));
    }
    table
}

/// Says how a list goes on, if it does.
pub(super) fn note_next(document: &Value) {
    if let Some(cursor) = document["next"].as_str() {
        output::note(format_args!(
            "there are more: add --cursor {}",
            output::harmless(cursor)
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_as_one_reads_them() {
        let document = json!({"a": {"b": ["x", 1]}, "c": null, "d": true, "e": "\u{1b}[2J", "f": 0});
        let shown = ["/a/b", "/c", "/d", "/e", "/f", "/none"].map(|pointer| cell(&document, pointer));
        assert_eq!(shown, ["x, 1", "", "yes", "\u{fffd}[2J", "0", ""]);
    }

    #[test]
    fn what_is_not_there_has_no_row() {
        let table = record("thing", &json!({"id": "1", "a": "x"}), [("a", "/a"), ("b", "/b")]).to_string();
        assert!(table.contains("│ a"), "{table}");
        assert!(!table.contains("│ b"), "{table}");
    }
}

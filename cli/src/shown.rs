//! Documents as tables. Everything in them may be a stranger's text.

use anyhow::Context as _;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;

use crate::age::length;
use crate::output::{self, Column, Form, Table};
use crate::part::Pages;

/// What is shown in a row of a record: its name, and where the value is (RFC 6901).
pub(crate) type Shown = (&'static str, &'static str);
/// What is shown in a column of a list, and where the value is; of a failure where its code and its words are, with a space between the two, of a
/// span where the times are that it may begin at, of which the last that is there counts, and the one that it ends at.
pub(crate) type ShownColumn = (Column, &'static str);

const NO_ITEMS: &str = "the answer has no items; is this the API of Postrider?";

/// A value as one reads it; empty for null.
pub(crate) fn cell(document: &Value, pointer: &str) -> String {
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

/// What is in a list; nothing when it is none.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// One document: a row for each value that it has.
pub(crate) fn record<const ROWS: usize>(title: &'static str, document: &Value, rows: [Shown; ROWS]) -> Table {
    record_of((title, &cell(document, "/id")), document, rows)
}

/// The same of a document that does not say whose it is.
pub(crate) fn record_of<const ROWS: usize>(
    (title, id): (&'static str, &str),
    document: &Value,
    rows: [Shown; ROWS],
) -> Table {
    let mut table = Table::record(title, id);
    for (head, pointer) in rows {
        let shown = cell(document, pointer);
        if !shown.is_empty() {
            table.add_row([head, shown.as_str()]);
        }
    }
    table
}

/// A list: a row for each document.
pub(crate) fn list<const COLUMNS: usize>(documents: &Value, columns: [ShownColumn; COLUMNS]) -> Table {
    let rows: Vec<Vec<String>> = items(documents)
        .iter()
        .map(|item| columns.iter().map(|column| shown(item, column)).collect())
        .collect();
    let mut table = output::table(columns.map(|(column, _)| column));
    for row in rows {
        table.add_row(row);
    }
    table
}

/// What a failure is called, with its code before it unless it begins with that.
fn coded(code: String, words: String) -> String {
    match (code.is_empty(), words.is_empty()) {
        (true, _) => words,
        (false, true) => code,
        (false, false) if words.starts_with(&code) => words,
        (false, false) => format!("{code} {words}"),
    }
}

/// How long it was from the last of its beginnings to its end; empty while one of them is missing.
fn span(item: &Value, beginnings: &str, end: &str) -> String {
    let mut beginnings = beginnings.split(' ').map(|pointer| cell(item, pointer));
    let from = beginnings.rfind(|at| !at.is_empty()).unwrap_or_default();
    let until = cell(item, end);
    match (from.parse::<DateTime<Utc>>(), until.parse::<DateTime<Utc>>()) {
        (Ok(from), Ok(until)) => length((until - from).num_seconds().max(0).unsigned_abs()),
        _ => String::new(),
    }
}

fn shown(item: &Value, (column, pointer): &ShownColumn) -> String {
    let shown = match pointer.rsplit_once(' ') {
        Some((beginnings, end)) if column.is_span => span(item, beginnings, end),
        Some((code, words)) => coded(cell(item, code), cell(item, words)),
        None => cell(item, pointer),
    };
    match shown.parse::<DateTime<Utc>>() {
        Ok(at) if column.is_time => at.to_rfc3339_opts(SecondsFormat::Secs, true),
        _ => shown,
    }
}

/// Prints a part of a list as [`print()`] does, page by page where its form has a line for each entry: JSON is one document, and a table has
/// one width for each column. Returns the last page with what was found; of what was printed page by page that is the first with anything.
pub(crate) async fn print_pages<const COLUMNS: usize>(
    mut pages: Pages<'_>,
    form: Form,
    columns: [ShownColumn; COLUMNS],
    nothing: impl FnOnce(&Value) -> String,
) -> anyhow::Result<Value> {
    if !form.is_row_by_row() {
        let asked = pages.left();
        let document = pages.whole().await?;
        let is_full = items(&document["items"]).len() as u64 >= asked;
        let nothing = nothing(&document);
        print_part((&document, is_full), form, columns, &nothing)?;
        return Ok(document);
    }
    let (mut last, mut found) = (Value::Null, None);
    while let Some(mut page) = pages.next().await? {
        page["items"].as_array().context(NO_ITEMS)?;
        let is_read = form.rows(&list(&page["items"], columns.clone()), last.is_null())?;
        if found.is_none() && !items(&page["items"]).is_empty() {
            found = Some(page["items"].take());
        }
        last = page;
        if !is_read {
            break;
        }
    }
    last["items"] = found.unwrap_or_else(|| Value::Array(Vec::new()));
    if items(&last["items"]).is_empty() {
        output::note(nothing(&last));
    }
    next(&last, pages.left() == 0).into_iter().for_each(output::note);
    Ok(last)
}

/// Prints a part of a list: as it came, or as a table and how it goes on.
pub(crate) fn print<const COLUMNS: usize>(
    document: &Value,
    form: Form,
    columns: [ShownColumn; COLUMNS],
    nothing: &str,
) -> anyhow::Result<()> {
    print_part((document, false), form, columns, nothing)
}

fn print_part<const COLUMNS: usize>(
    (document, is_full): (&Value, bool),
    form: Form,
    columns: [ShownColumn; COLUMNS],
    nothing: &str,
) -> anyhow::Result<()> {
    if form == Form::Json {
        return output::json(document);
    }
    let items = document["items"].as_array().context(NO_ITEMS)?;
    if items.is_empty() {
        output::note(nothing);
    }
    form.table(&list(&document["items"], columns))?;
    next(document, is_full).into_iter().for_each(output::note);
    Ok(())
}

/// Says how a list goes on, if it does: that more follows, or may follow, or how far back a search has looked that found nothing yet.
pub(crate) fn note_next(document: &Value) {
    next(document, false).into_iter().for_each(output::note);
}

/// The same of a part that may have as many entries as were asked for: how far back was looked for these tells nothing.
fn next(document: &Value, is_full: bool) -> Option<String> {
    let cursor = output::harmless(document["next"].as_str()?);
    let Some(to) = document["lookedBackTo"].as_str().map(output::harmless) else {
        return Some(format!("there are more: add --cursor {cursor}"));
    };
    Some(if is_full {
        format!("there may be more before: add --cursor {cursor}")
    } else if items(&document["items"]).is_empty() {
        format!("looked back to {to}; go on with --cursor {cursor}")
    } else {
        format!(
            "looked back to {to} only, where some thousands were looked at: there may be more before, add --cursor {cursor}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_shown_as_one_reads_them() {
        let document = json!({"a": {"b": ["x", 1]}, "c": null, "d": true, "e": "\u{1b}[2J", "f": 0});
        let shown = ["/a/b", "/c", "/d", "/e", "/f", "/none"].map(|pointer| cell(&document, pointer));
        assert_eq!(shown, ["x, 1", "", "yes", "\u{fffd}[2J", "0", ""]);
    }

    #[test]
    fn a_search_that_goes_on_says_how_far_back_it_has_looked_and_promises_nothing() {
        let mut part = json!({"items": [], "next": null, "lookedBackTo": "2026-11-21T12:00:00Z"});
        assert_eq!(next(&part, false), None);
        part["next"] = "c".into();
        let said = next(&part, false).unwrap();
        assert_eq!(said, "looked back to 2026-11-21T12:00:00Z; go on with --cursor c");
        part["items"] = json!([{"id": "1"}]);
        let said = next(&part, false).unwrap();
        assert_eq!(
            said,
            "looked back to 2026-11-21T12:00:00Z only, where some thousands were looked at: there may be more before, add --cursor c"
        );
        let said = next(&part, true).unwrap();
        assert_eq!(said, "there may be more before: add --cursor c");
        let said = next(&json!({"next": "c"}), false).unwrap();
        assert_eq!(said, "there are more: add --cursor c");
    }

    #[test]
    fn what_is_not_there_has_no_row() {
        let table = record("thing", &json!({"id": "1", "a": "x"}), [("a", "/a"), ("b", "/b")]).plain();
        let rows: Vec<&str> = table.lines().skip(1).collect();
        assert_eq!(rows, ["a      x"], "{table}");
    }
}

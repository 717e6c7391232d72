//! Lists as files: CSV or JSON of a list as it is filtered, at most 10,000 rows, written as they are read.
//!
//! The first part is read before anything is answered, so that a wrong filter is a problem and no file. A part that cannot be read later ends the
//! connection before the file does: a browser then says that the download failed.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use http::header;
use http_api::paging::List;
use http_api::{Params, Problem, TakesBodies as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::dead_letters::Chosen;
use super::frame::Frame;
use crate::app::App;
use crate::examined::Part;
use crate::request::Viewer;

/// Most rows of a file.
const ROWS_MAX: usize = 10_000;
/// How many rows are asked for at once.
pub(super) const PART: u32 = 200;
/// Words of the address of a file that are no filters.
pub(super) const OWN: [&str; 3] = ["format", "cursor", "limit"];

/// A column of a file: its head, and where its value is in the document of a row.
pub(super) type Column = (&'static str, &'static str);

/// Rows as the API shows them, and where the list goes on.
pub(super) struct Rows {
    pub(super) items: Vec<Value>,
    pub(super) next: Option<String>,
}

impl Rows {
    /// A part of a list.
    pub(super) fn of<T: Serialize>(items: &[T], next: Option<String>) -> Self {
        Self {
            items: items.iter().map(|item| json!(item)).collect(),
            next,
        }
    }
}

impl<T: Serialize> From<List<T>> for Rows {
    fn from(list: List<T>) -> Self {
        Self::of(&list.items, list.next)
    }
}

impl<T: Serialize> From<Part<T>> for Rows {
    fn from(part: Part<T>) -> Self {
        Self::of(&part.items, part.next)
    }
}

/// What the operation behind a list is asked for a part of the file: what the address says but for its format, from a cursor on.
pub(super) async fn params<T: DeserializeOwned>(
    frame: &Frame,
    cursor: Option<&str>,
) -> Result<Params<T>, Problem> {
    let limit = PART.to_string();
    let part = [("limit", &*limit), ("cursor", cursor.unwrap_or_default())];
    Chosen::asked(frame, &OWN).params(frame.now, &part).await
}

/// What an operation lists, as a file called like `name`.
pub(super) async fn list<T, L, P, D>(
    app: Arc<App>,
    frame: &Frame,
    (name, columns): (&str, &'static [Column]),
    operation: L,
) -> Result<Response, Problem>
where
    T: DeserializeOwned + Send,
    L: Fn(State<Arc<App>>, Viewer, Params<T>) -> P + Copy + Send + 'static,
    P: Future<Output = Result<Json<D>, Problem>> + Send,
    Rows: From<D>,
{
    let asked = frame.clone();
    let part = move |cursor: Option<String>| {
        let (app, frame) = (Arc::clone(&app), asked.clone());
        async move {
            let params = params(&frame, cursor.as_deref()).await?;
            let deadline = app.deadline();
            let Json(list) = operation(State(app), Viewer { deadline }, params).await?;
            Ok(Rows::from(list))
        }
    };
    file(frame, name, columns, part).await
}

/// Where a list is as a file, as it is filtered on this page.
pub(super) fn link(frame: &Frame, path: &str, format: &str) -> String {
    let query = frame.address.split_once('?').map_or("", |(_, query)| query);
    let kept = form_urlencoded::parse(query.as_bytes());
    let kept = kept.filter(|(name, _)| !["cursor", "limit", "format", "by"].contains(&&**name));
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("format", format)
        .extend_pairs(kept)
        .finish();
    format!("{path}?{query}")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Json,
}

/// What is left to write.
struct Writing<F> {
    format: Format,
    columns: &'static [Column],
    part: F,
    /// What was read and not written yet; none when all is written but the end.
    rows: Option<Rows>,
    written: usize,
    has_begun: bool,
    has_ended: bool,
}

/// A list as a file called like `name`. `part` reads the rows from a cursor on.
pub(super) async fn file<F, P>(
    frame: &Frame,
    name: &str,
    columns: &'static [Column],
    part: F,
) -> Result<Response, Problem>
where
    F: Fn(Option<String>) -> P + Send + 'static,
    P: Future<Output = Result<Rows, Problem>> + Send,
{
    let (format, kind) = match &*frame.asked("format") {
        "csv" => (Format::Csv, "text/csv; charset=utf-8"),
        "json" => (Format::Json, "application/json"),
        _ => return Err(Problem::query("format", "must be csv or json")),
    };
    let rows = Box::pin(part(None)).await?;
    let extension = if format == Format::Csv { "csv" } else { "json" };
    let disposition = format!(
        "attachment; filename=\"{name}-{}.{extension}\"",
        frame.now.format("%Y%m%d-%H%M%S")
    );
    let writing = Writing {
        format,
        columns,
        part,
        rows: Some(rows),
        written: 0,
        has_begun: false,
        has_ended: false,
    };
    let pieces = stream::unfold(writing, |mut writing| async {
        let piece = writing.piece().await?;
        Some((piece, writing))
    });
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

impl<F, P> Writing<F>
where
    F: Fn(Option<String>) -> P,
    P: Future<Output = Result<Rows, Problem>> + Send,
{
    /// The next piece of the file: the rows that were read. Reads the following ones.
    async fn piece(&mut self) -> Option<Result<String, io::Error>> {
        let Some(rows) = self.rows.take() else {
            let is_open = !std::mem::replace(&mut self.has_ended, true);
            return (is_open && self.format == Format::Json).then(|| Ok("\n]\n".to_owned()));
        };
        let mut piece = String::new();
        // A part without rows may be followed by others.
        if !std::mem::replace(&mut self.has_begun, true) {
            self.begin(&mut piece);
        }
        for row in rows.items.iter().take(ROWS_MAX - self.written) {
            self.row(&mut piece, row);
            self.written += 1;
        }
        if let Some(next) = rows.next.filter(|_| self.written < ROWS_MAX) {
            match Box::pin((self.part)(Some(next))).await {
                Ok(rows) => self.rows = Some(rows),
                Err(problem) => {
                    self.has_ended = true;
                    tracing::debug!(
                        detail = problem.detail(),
                        "a list could not be written to its end"
                    );
                    return Some(Err(io::Error::other("the list could not be read to its end")));
                }
            }
        }
        Some(Ok(piece))
    }

    fn begin(&self, piece: &mut String) {
        match self.format {
            Format::Csv => {
                let heads: Vec<_> = self.columns.iter().map(|(head, _)| *head).collect();
                piece.push_str(&heads.join(","));
                piece.push_str("\r\n");
            }
            Format::Json => piece.push('['),
        }
    }

    fn row(&self, piece: &mut String, row: &Value) {
        match self.format {
            Format::Csv => {
                let cells = self.columns.iter().map(|(_, pointer)| cell(row.pointer(pointer)));
                piece.push_str(&cells.collect::<Vec<_>>().join(","));
                piece.push_str("\r\n");
            }
            Format::Json => {
                let comma = if self.written == 0 { "" } else { "," };
                // Writing to a String does not fail.
                let _ = write!(piece, "{comma}\n{row}");
            }
        }
    }
}

/// A value as a cell. What a spreadsheet would take for a formula is text: strangers write some of it.
fn cell(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{text}") } else { text };
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_where_it_has_to_be_and_never_a_formula() {
        for (value, written) in [
            (json!(null), ""),
            (json!(12), "12"),
            (json!("plain"), "plain"),
            (json!("a,\"b\""), "\"a,\"\"b\"\"\""),
            (json!("=1+1"), "'=1+1"),
            (json!(["a", 1]), "\"[\"\"a\"\",1]\""),
        ] {
            assert_eq!(cell(Some(&value)), written);
        }
        assert_eq!(cell(None), "");
    }
}

//! Lists as files: CSV or JSON, at most 10,000 rows, written as they are read, so that no file is ever in memory as a whole.
//!
//! The first part is read before anything is answered, so that a wrong filter is a problem and no file. A file that is not all says so at its end,
//! whether it is full or what follows could not be read. What it deliberately does not know: which list it is, and how its parts are read.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt::Write as _;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use http::header;
use http_api::Problem;
use http_api::paging::List;
use serde::Serialize;
use serde_json::{Value, json};

/// Most rows of a file.
const ROWS_MAX: usize = 10_000;
/// Most parts that are read for one: a filter that little matches goes through many without a row.
const PARTS_MAX: usize = 200;
/// How many rows are asked for at once: as many as a part of a list has at most.
pub const PART: u32 = 200;
/// What a file ends with whose list could not be read to its end.
const NOT_READ: &str = "This is not all: what follows could not be read. Download it once more.";

/// A column of a file: its head, and where its value is in the document of a row, as a JSON pointer.
pub type Column = (&'static str, &'static str);

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values, by RFC 4180.
    Csv,
    /// The rows as the API has them.
    Json,
}

impl Format {
    /// The one with this name, which is what the names of its files end with.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}

/// What the file of a list is called and made of.
#[derive(Debug, Clone)]
pub struct File {
    /// Its name, without what it ends with.
    pub name: String,
    /// Its columns.
    pub columns: &'static [Column],
    /// What a file ends with that is full before the list has ended.
    pub not_all: &'static str,
}

/// Rows as the API shows them, and where the list goes on.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// The documents of the rows.
    pub items: Vec<Value>,
    /// The cursor of the following ones; none when the list has ended.
    pub next: Option<String>,
}

impl Rows {
    /// A part of a list.
    pub fn of<T: Serialize>(items: &[T], next: Option<String>) -> Self {
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

/// What is left to write.
struct Writing<F> {
    format: Format,
    file: File,
    part: F,
    /// What was read and not written yet; none when all is written.
    rows: Option<Rows>,
    written: usize,
    parts: usize,
}

impl File {
    /// The answer with it. `part` reads the rows from a cursor on.
    pub async fn answer<F, P>(self, format: Format, part: F) -> Result<Response, Problem>
    where
        F: Fn(Option<String>) -> P + Send + 'static,
        P: Future<Output = Result<Rows, Problem>> + Send,
    {
        let rows = Box::pin(part(None)).await?;
        let disposition = format!("attachment; filename=\"{}.{}\"", self.name, format.name());
        let writing = Writing {
            format,
            file: self,
            part,
            rows: Some(rows),
            written: 0,
            parts: 0,
        };
        let pieces = stream::unfold(writing, |mut writing| async {
            let piece = writing.piece().await?;
            Some((Ok::<_, Infallible>(piece), writing))
        });
        let headers = [
            (header::CONTENT_TYPE, format.media_type().to_owned()),
            (header::CONTENT_DISPOSITION, disposition),
            (header::CACHE_CONTROL, "no-store".to_owned()),
        ];
        Ok((headers, Body::from_stream(pieces)).into_response())
    }
}

impl<F, P> Writing<F>
where
    F: Fn(Option<String>) -> P,
    P: Future<Output = Result<Rows, Problem>> + Send,
{
    /// The next piece of the file: the rows that were read. Reads the following ones.
    async fn piece(&mut self) -> Option<String> {
        let rows = self.rows.take()?;
        let mut piece = String::new();
        // A part without rows may be followed by others.
        if self.parts == 0 {
            self.begin(&mut piece);
        }
        self.parts += 1;
        let room = ROWS_MAX - self.written;
        let is_cut = rows.items.len() > room;
        for row in rows.items.iter().take(room) {
            self.row(&mut piece, row);
            self.written += 1;
        }
        let is_full = self.written >= ROWS_MAX || self.parts >= PARTS_MAX;
        let missing = match rows.next.clone() {
            None => is_cut.then_some(self.file.not_all),
            Some(_) if is_full => Some(self.file.not_all),
            Some(next) => match Box::pin((self.part)(Some(next))).await {
                Ok(following) => {
                    self.rows = Some(following);
                    return Some(piece);
                }
                Err(problem) => {
                    tracing::debug!(
                        detail = problem.detail(),
                        "a list could not be written to its end"
                    );
                    Some(NOT_READ)
                }
            },
        };
        // The cursor leads past what had no room.
        let next = rows.next.as_deref().filter(|_| !is_cut);
        self.end(&mut piece, next, missing);
        Some(piece)
    }

    fn begin(&self, piece: &mut String) {
        match self.format {
            Format::Csv => {
                let heads: Vec<_> = self.file.columns.iter().map(|(head, _)| *head).collect();
                piece.push_str(&heads.join(","));
                piece.push_str("\r\n");
            }
            Format::Json => piece.push_str("{\"items\":["),
        }
    }

    fn row(&self, piece: &mut String, row: &Value) {
        match self.format {
            Format::Csv => {
                let columns = self.file.columns.iter();
                let cells = columns.map(|(_, pointer)| value(row.pointer(pointer)));
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

    /// Ends the file, and says what is `missing` of the list, if anything is.
    fn end(&self, piece: &mut String, next: Option<&str>, missing: Option<&str>) {
        match (self.format, missing) {
            (Format::Csv, None) => {}
            (Format::Csv, Some(missing)) => {
                piece.push_str(&cell(missing));
                // As many values as every row has.
                piece.push_str(&",".repeat(self.file.columns.len().saturating_sub(1)));
                piece.push_str("\r\n");
            }
            (Format::Json, _) => {
                let (next, missing) = (json!(next), json!(missing));
                let _ = writeln!(piece, "\n],\"next\":{next},\"notAll\":{missing}}}");
            }
        }
    }
}

/// A value of a document as a cell.
fn value(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(Value::String(text)) => cell(text),
        // No spreadsheet takes a negative number for a formula.
        Some(Value::Number(number)) => Cow::Owned(number.to_string()),
        Some(other) => Cow::Owned(cell(&other.to_string()).into_owned()),
    }
}

/// Text as a cell. One that a spreadsheet takes for a formula begins with an apostrophe: strangers write some of it.
fn cell(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    if !is_formula && !text.contains(['"', ',', '\n', '\r']) {
        return Cow::Borrowed(text);
    }
    let quoted = text.replace('"', "\"\"");
    Cow::Owned(format!("\"{}{quoted}\"", if is_formula { "'" } else { "" }))
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use http_api::ProblemKind;

    use super::*;

    type Last = fn() -> Result<Rows, Problem>;

    const ENDS: Last = || Ok(Rows::default());
    const FAILS: Last = || Err(Problem::new(ProblemKind::INTERNAL, "the database is away"));
    const COLUMNS: [Column; 2] = [("id", "/id"), ("name", "/of/name")];

    /// The file of a list with `parts` full parts, after which comes what `last` is: its end, or what goes wrong.
    async fn written(format: Format, parts: usize, last: Last) -> String {
        let part = move |cursor: Option<String>| async move {
            let at = cursor.map_or(0, |cursor| cursor.parse().expect("a cursor of ours"));
            if at == parts {
                return last();
            }
            let row = |row: u32| json!({"id": row, "of": {"name": "a,b"}});
            let items = (0..PART).map(row).collect();
            Ok(Rows {
                items,
                next: Some((at + 1).to_string()),
            })
        };
        let file = File {
            name: "list".to_owned(),
            columns: &COLUMNS,
            not_all: "This is not all, really.",
        };
        let answer = file.answer(format, part).await.expect("the first part is read");
        let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
        String::from_utf8(body.to_vec()).expect("text")
    }

    #[tokio::test]
    async fn a_file_says_at_its_end_that_it_is_not_all_and_only_then() {
        for (parts, last, lines, said) in [
            (0, ENDS, 1, "id,name"),
            (2, ENDS, 401, "199,\"a,b\""),
            (51, ENDS, 10_002, "\"This is not all, really.\","),
            (
                2,
                FAILS,
                402,
                "This is not all: what follows could not be read. Download it once more.,",
            ),
        ] {
            let file = written(Format::Csv, parts, last).await;
            assert_eq!(file.lines().count(), lines);
            assert_eq!(file.lines().last(), Some(said));
        }
    }

    #[tokio::test]
    async fn a_file_of_json_is_one_however_it_ends() {
        for (parts, last, rows, next, not_all) in [
            (0, ENDS, 0, Value::Null, Value::Null),
            (1, ENDS, 200, Value::Null, Value::Null),
            (51, ENDS, 10_000, json!("50"), json!("This is not all, really.")),
            (2, FAILS, 400, json!("2"), json!(NOT_READ)),
        ] {
            let file: Value = serde_json::from_str(&written(Format::Json, parts, last).await).expect("JSON");
            assert_eq!(file["items"].as_array().map(Vec::len), Some(rows));
            assert_eq!((&file["next"], &file["notAll"]), (&next, &not_all));
        }
    }

    #[test]
    fn a_cell_is_quoted_where_it_has_to_be_and_never_a_formula() {
        for (cells, written) in [
            (json!(null), ""),
            (json!(-12), "-12"),
            (json!("plain"), "plain"),
            (json!("a,\"b\""), "\"a,\"\"b\"\"\""),
            (json!("=1+1"), "\"'=1+1\""),
            (json!("-1+1"), "\"'-1+1\""),
            (json!("\n=1+1"), "\"'\n=1+1\""),
            (json!(["a", 1]), "\"[\"\"a\"\",1]\""),
        ] {
            assert_eq!(value(Some(&cells)), written);
        }
        assert_eq!(value(None), "");
    }
}

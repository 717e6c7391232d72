//! Lists of the console as files: CSV or JSON of a list as it is filtered.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http_api::{Params, Problem, ReadParams, TakesBodies as _};
pub(super) use pages::export::{Column, PART, Rows};
use pages::export::{File, Format};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use super::dead_letters::Chosen;
use super::frame::Frame;
use crate::app::App;
use crate::examined::Part;
use crate::request::Viewer;

/// Words of the address of a file that are no filters.
pub(super) const OWN: [&str; 3] = ["format", "cursor", "limit"];
/// What a file ends with that is not all.
const NOT_ALL: &str = "This is not all: a file has 10,000 rows at most. Narrow the time or the filter, or list the others with the API or the command line.";

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
    L: Fn(State<Arc<App>>, Viewer, ReadParams<T>) -> P + Copy + Send + 'static,
    P: Future<Output = Result<Json<D>, Problem>> + Send,
    Rows: From<D>,
{
    let asked = frame.clone();
    let part = move |cursor: Option<String>| {
        let (app, frame) = (Arc::clone(&app), asked.clone());
        async move {
            let Params(params) = params(&frame, cursor.as_deref()).await?;
            let deadline = app.deadline();
            let Json(list) = operation(State(app), Viewer { deadline }, ReadParams::of(params)).await?;
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
    let format = Format::named(&frame.asked("format"))
        .ok_or_else(|| Problem::query("format", "must be csv or json"))?;
    let file = File {
        name: format!("{name}-{}", frame.now.format("%Y%m%d-%H%M%S")),
        columns,
        not_all: NOT_ALL,
    };
    file.answer(format, part).await
}

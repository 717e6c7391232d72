//! What operations take that take no parameter or no body: a request that brings one all the same means something that would not happen.
//!
//! Which operation takes what is read from the service's own OpenAPI document. It is found out in front of the handlers, and said by them once
//! the caller is known: strangers learn nothing from it.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, header};
use serde_json::Value;
use url::form_urlencoded;

use crate::field_code::FieldCode;
use crate::json::Handling;
use crate::kind::ProblemKind;
use crate::problem::{FieldProblem, Problem};

/// The longest body that holds nothing: `{}`.
const NOTHING: u64 = 2;
/// Most names that are told.
const TOLD_MAX: usize = 50;

/// Whether an operation takes parameters in its query string, and whether it takes a body.
#[derive(Debug, Clone, Copy)]
struct Takes {
    query: bool,
    body: bool,
}

/// What each operation of a service takes, by method and path.
#[derive(Debug)]
pub(crate) struct Operations(HashMap<(String, String), Takes>);

/// What a request brings that its operation does not take.
#[derive(Debug, Clone)]
struct InVain(Arc<Vec<FieldProblem>>, bool);

impl Operations {
    /// Those of an OpenAPI document.
    pub(crate) fn of(document: &Value) -> Self {
        let paths = document["paths"].as_object().into_iter().flatten();
        let operations = paths.flat_map(|(path, item)| {
            let methods = item.as_object().into_iter().flatten();
            methods.map(move |(method, operation)| {
                let parameters = operation["parameters"].as_array().into_iter().flatten();
                let takes = Takes {
                    query: parameters.into_iter().any(|parameter| parameter["in"] == "query"),
                    body: !operation["requestBody"].is_null(),
                };
                ((method.to_uppercase(), path.clone()), takes)
            })
        });
        Self(operations.collect())
    }

    fn find(&self, request: &Request) -> Option<Takes> {
        let path = request.extensions().get::<MatchedPath>()?.as_str().to_owned();
        self.0.get(&(request.method().as_str().to_owned(), path)).copied()
    }
}

/// Finds out what a request brings in vain.
pub(crate) async fn find(
    State(operations): State<Arc<Operations>>,
    mut request: Request,
    next: Next,
) -> Response {
    let is_strict = matches!(Handling::preferred(request.headers()), Handling::Strict);
    if let Some(takes) = operations.find(&request).filter(|_| is_strict) {
        let query = request.uri().query().unwrap_or_default();
        let is_body = !takes.body && has_body(request.headers());
        let wrong: Vec<FieldProblem> = if takes.query {
            Vec::new()
        } else {
            let names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name.into_owned());
            let detail = "is no parameter of this request; it takes none";
            names
                .take(TOLD_MAX)
                .map(|name| FieldProblem::new(name, detail).coded(FieldCode::UnknownField))
                .collect()
        };
        if is_body || !wrong.is_empty() {
            request.extensions_mut().insert(InVain(Arc::new(wrong), is_body));
        }
    }
    next.run(request).await
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    length.is_some_and(|length| length > NOTHING)
}

/// Refuses what a request brings in vain. To be asked once the caller is known.
///
/// # Errors
///
/// A [`ProblemKind::INVALID_QUERY`] that names each parameter, or a [`ProblemKind::VALIDATION`] for a body.
pub fn refuse_in_vain(parts: &Parts) -> Result<(), Problem> {
    let Some(InVain(wrong, is_body)) = parts.extensions.get() else {
        return Ok(());
    };
    if let Some(first) = wrong.first() {
        let detail = format!("{} {}", first.field, first.detail);
        return Err(Problem::new(ProblemKind::INVALID_QUERY, detail).with_errors(wrong.to_vec()));
    }
    if *is_body {
        let detail =
            "this request takes no body: leave it out, or send {}; `Prefer: handling=lenient` has it ignored";
        return Err(Problem::new(ProblemKind::VALIDATION, detail));
    }
    Ok(())
}

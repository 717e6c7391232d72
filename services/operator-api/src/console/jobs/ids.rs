//! Dead letters that are chosen by their identifiers, up to as many as a job takes: more than an address holds, so that a form brings them.

use askama::Template;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use http::StatusCode;
use http_api::{FieldProblem, Problem, ProblemKind};

use super::draft::Draft;
use super::new::counted;
use crate::console::frame::{Frame, Page};
use crate::console::visit::Fields;
use crate::request::Operator;

/// The form with what was typed into it and is wrong.
#[derive(Template)]
#[template(path = "job_ids.html")]
struct Identifiers {
    frame: Frame,
    ids: String,
    errors: Vec<FieldProblem>,
}

/// The identifiers in a text: one a line or several beside each other. Of a row of a file of dead letters the first value alone is one.
pub(super) fn identifiers(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("id,")) {
        let second = line.split(',').nth(1).map(str::trim);
        let is_row = second.is_some_and(|second| second.parse::<DateTime<Utc>>().is_ok());
        let words = line.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty());
        let taken = if is_row { 1 } else { usize::MAX };
        found.extend(words.take(taken).map(str::to_owned));
    }
    found
}

/// Counts what was chosen, before anything is done.
pub(super) async fn count(operator: Operator, frame: Frame, fields: Fields) -> Result<Response, Problem> {
    let draft = Draft::written(&fields).untyped();
    draft.checked_action()?;
    let of_it = match draft.meant() {
        Ok(()) => Box::pin(counted(operator, frame.clone(), draft, None)).await,
        Err(problem) => Err(problem),
    };
    match of_it {
        Ok(page) => Ok(Page(page).into_response()),
        Err(problem) if problem.kind() == ProblemKind::VALIDATION => {
            let page = Identifiers {
                frame,
                ids: fields.get("ids").unwrap_or_default().to_owned(),
                errors: problem.errors().to_vec(),
            };
            Ok((StatusCode::UNPROCESSABLE_ENTITY, Page(page)).into_response())
        }
        Err(problem) => Err(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_read_as_they_are_written_and_from_rows_of_a_file() {
        const FIRST: &str = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
        const OTHER: &str = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5e";
        for (text, found) in [
            (format!("{FIRST}\n{OTHER}\n"), vec![FIRST, OTHER]),
            (format!(" {FIRST}, {OTHER};\t{FIRST}"), vec![FIRST, OTHER, FIRST]),
            (
                format!("id,createdAt,push\n{FIRST},2026-11-20T12:00:00Z,{OTHER}"),
                vec![FIRST],
            ),
            // What is no identifier stays, so that it is said rather than left out.
            (format!("{FIRST} and"), vec![FIRST, "and"]),
            ("\n \n".to_owned(), Vec::new()),
        ] {
            assert_eq!(identifiers(&text), found, "{text}");
        }
    }
}

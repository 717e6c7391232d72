//! The word that goes with an act: what a later reader of the records learns of why.

use http_api::{FieldCode, FieldProblem, Payload, Problem};
use serde::Deserialize;
use utoipa::ToSchema;

/// A body that holds nothing but a note.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = Note)]
pub(crate) struct NotePayload {
    /// Why; at most 2,000 bytes.
    #[schema(max_length = 2_000, example = "Swrve was down until 14:20, see incident 17.")]
    pub(crate) note: Option<String>,
}

/// The body of a request that comes with a note.
pub(crate) type Note = Payload<NotePayload>;

impl NotePayload {
    /// The note of an act that does not need one; a blank one is none.
    pub(crate) fn optional(&self) -> Result<Option<&str>, Problem> {
        optional(self.note.as_deref())
    }

    /// The note of an act that needs one.
    pub(crate) fn required(&self) -> Result<&str, Problem> {
        required(self.note.as_deref())
    }
}

/// As [`NotePayload::optional`], for the field `note` of another body.
pub(crate) fn optional(note: Option<&str>) -> Result<Option<&str>, Problem> {
    http_api::note(note)
}

/// As [`NotePayload::required`], for the field `note` of another body.
pub(crate) fn required(note: Option<&str>) -> Result<&str, Problem> {
    let detail = "is needed here: say why, for later readers of the records";
    optional(note)?
        .ok_or_else(|| Problem::fields(vec![FieldProblem::new("note", detail).coded(FieldCode::Missing)]))
}

/// A note and what else a body says, or everything that is wrong with either.
pub(crate) fn with<N, T>(note: Result<N, Problem>, rest: Result<T, Problem>) -> Result<(N, T), Problem> {
    match (note, rest) {
        (Ok(note), Ok(rest)) => Ok((note, rest)),
        (Err(note), Err(rest)) => Err(rest.and(note)),
        (Err(problem), Ok(_)) | (Ok(_), Err(problem)) => Err(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_note_is_none_where_one_is_needed() {
        for none in [None, Some(""), Some(" \t")] {
            assert!(required(none).is_err());
        }
        assert_eq!(required(Some(" because ")).unwrap(), "because");
    }

    #[test]
    fn a_note_that_is_wrong_is_told_with_the_fields_that_are() {
        let wrong = || {
            Problem::fields(vec![
                FieldProblem::new("name", "is needed").coded(FieldCode::Missing),
            ])
        };
        let told = |note, rest: Result<(), Problem>| {
            let problem = with(required(note), rest).unwrap_err();
            let errors = problem.errors().iter();
            errors.map(|error| error.field.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(told(None, Err(wrong())), ["name", "note"]);
        assert_eq!(told(None, Ok(())), ["note"]);
        assert_eq!(told(Some("because"), Err(wrong())), ["name"]);
        assert_eq!(with(required(Some("because")), Ok(1)).unwrap(), ("because", 1));
    }
}

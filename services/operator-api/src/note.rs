//! The word that goes with an act: what a later reader of the records learns of why.

use http_api::{FieldProblem, Payload, Problem};
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
    optional(note)?.ok_or_else(|| Problem::fields(vec![FieldProblem::new("note", detail)]))
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
}

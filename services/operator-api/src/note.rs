//! The word that goes with an act: what a later reader of the records learns of why.

use http_api::{FieldProblem, Payload, Problem};
use serde::Deserialize;
use utoipa::ToSchema;

/// Longest note, in bytes.
const NOTE_MAX_BYTES: usize = 2_000;

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
    let Some(note) = note.map(str::trim).filter(|note| !note.is_empty()) else {
        return Ok(None);
    };
    if note.len() > NOTE_MAX_BYTES {
        return Err(refused(format!("must not be longer than {NOTE_MAX_BYTES} bytes")));
    }
    // PostgreSQL keeps any text but this.
    if note.contains('\0') {
        return Err(refused("must not hold the character U+0000"));
    }
    Ok(Some(note))
}

/// As [`NotePayload::required`], for the field `note` of another body.
pub(crate) fn required(note: Option<&str>) -> Result<&str, Problem> {
    optional(note)?.ok_or_else(|| refused("is needed here: say why, for later readers of the records"))
}

fn refused(detail: impl Into<String>) -> Problem {
    Problem::fields(vec![FieldProblem::new("note", detail)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_kept_without_the_blanks_around_it_and_a_blank_one_is_none() {
        assert_eq!(optional(Some("  because \n")).unwrap(), Some("because"));
        for none in [None, Some(""), Some(" \t")] {
            assert_eq!(optional(none).unwrap(), None);
            assert!(required(none).is_err());
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let longest = "é".repeat(NOTE_MAX_BYTES / 2);
        assert_eq!(required(Some(&longest)).unwrap(), longest);
        assert!(optional(Some(&format!("{longest}x"))).is_err());
        assert!(optional(Some("a\0b")).is_err());
    }
}

//! The word that goes with an act: what a later reader of the records learns of why.

use crate::field_code::FieldCode;
use crate::problem::{FieldProblem, Problem};

/// Longest note, in bytes.
const NOTE_MAX_BYTES: usize = 2_000;

/// The note of an act, as the field `note` of its body has it; a blank one is none.
///
/// # Errors
///
/// A problem of that field, when the note cannot be kept.
pub fn note(given: Option<&str>) -> Result<Option<&str>, Problem> {
    let Some(note) = given.map(str::trim).filter(|note| !note.is_empty()) else {
        return Ok(None);
    };
    if note.len() > NOTE_MAX_BYTES {
        let detail = format!("must not be longer than {NOTE_MAX_BYTES} bytes");
        return Err(refused(FieldProblem::new("note", detail).at_most(NOTE_MAX_BYTES)));
    }
    // PostgreSQL keeps any text but this.
    if note.contains('\0') {
        let wrong = FieldProblem::new("note", "must not hold the character U+0000");
        return Err(refused(wrong.coded(FieldCode::WrongFormat)));
    }
    Ok(Some(note))
}

fn refused(wrong: FieldProblem) -> Problem {
    Problem::fields(vec![wrong])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_kept_without_the_blanks_around_it_and_a_blank_one_is_none() {
        assert_eq!(note(Some("  because \n")).unwrap(), Some("because"));
        for none in [None, Some(""), Some(" \t")] {
            assert_eq!(note(none).unwrap(), None);
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let longest = "é".repeat(NOTE_MAX_BYTES / 2);
        assert_eq!(note(Some(&longest)).unwrap(), Some(&*longest));
        assert!(note(Some(&format!("{longest}x"))).is_err());
        assert!(note(Some("a\0b")).is_err());
    }
}

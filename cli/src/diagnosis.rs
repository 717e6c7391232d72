//! What is thought of a signature, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use signature_diagnosis::{Cause, Diagnosis};

use crate::shown::{self, cell};

/// `verified`, or the word for what is wrong: that of the libraries for every language.
pub(crate) fn verdict(diagnosis: &Diagnosis) -> &'static str {
    match &diagnosis.verdict {
        Ok(_) => "verified",
        Err(error) => error.code(),
    }
}

/// A line for each cause, and one for what mends it.
pub(crate) fn lines(found: &[Cause]) -> String {
    lines_of(&causes(found))
}

/// The same of causes as programs have them.
pub(crate) fn lines_of(causes: &Value) -> String {
    let mut text = String::new();
    for cause in shown::items(causes) {
        let (why, mend) = (cell(cause, "/text"), cell(cause, "/mend"));
        // Writing to a String does not fail.
        let _ = write!(text, "  why: {why}\n  do:  {mend}\n");
    }
    text.truncate(text.trim_end().len());
    text
}

/// The causes for programs.
pub(crate) fn causes(causes: &[Cause]) -> Value {
    causes
        .iter()
        .map(|cause| json!({"code": cause.code(), "text": cause.to_string(), "mend": cause.mend()}))
        .collect()
}

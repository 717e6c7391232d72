//! Text of foreign origin made fit for a row and a log line. It knows nothing of where the text comes from.

/// How much of a text is kept, in characters.
const MAX_CHARS: usize = 1_000;

/// `text` without control characters (PostgreSQL stores no NUL, and a log line is one line) and not too long.
pub(crate) fn sanitise(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_CHARS)
        .collect()
}

//! Text of strangers, such that it can be shown: on a terminal, in a mail, in a sentence.

/// Text without what a terminal or a mail reader would obey: control characters, and what breaks or turns round a line, are
/// shown as U+FFFD.
pub fn harmless(text: &str) -> String {
    text.chars().map(harmless_char).collect()
}

/// The character itself, or U+FFFD in place of one that would be obeyed.
pub fn harmless_char(c: char) -> char {
    let obeyed = c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if obeyed { '\u{fffd}' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_strangers_moves_no_cursor_and_turns_no_line_round() {
        let shown = harmless("a\u{1b}[2J\u{9b}m\n\u{202e}b\u{2066}\u{2028} ā🎉");
        assert_eq!(
            shown,
            "a\u{fffd}[2J\u{fffd}m\u{fffd}\u{fffd}b\u{fffd}\u{fffd} ā🎉"
        );
    }
}

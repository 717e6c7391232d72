//! Breaking text into lines at blanks, and never inside a word: what is an identifier or an address can be copied.

use unicode_width::UnicodeWidthStr as _;

/// The text in lines of at most `width` columns. A word that is wider has a line of its own, and is as wide as it is.
pub(super) fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let mut current = String::new();
        for word in line.split(' ') {
            if !current.is_empty() && current.width() + 1 + word.width() > width {
                lines.push(std::mem::take(&mut current));
            }
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
        lines.push(current);
    }
    lines
}

/// Columns of the widest of these.
pub(super) fn widest<'a>(texts: impl IntoIterator<Item = &'a str>) -> usize {
    texts
        .into_iter()
        .map(|text| text.width())
        .max()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_blanks_and_words_stay_whole() {
        assert_eq!(
            lines("to https://receiver.example/hooks it went", 12),
            ["to", "https://receiver.example/hooks", "it went"]
        );
        assert_eq!(lines("one\ntwo three", 20), ["one", "two three"]);
        assert_eq!(lines("", 20), [""]);
    }
}

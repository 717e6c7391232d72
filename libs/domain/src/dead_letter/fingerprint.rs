//! Texts of strangers as parts of fingerprints.

use std::fmt::Write as _;

/// Such a text so that the fingerprint can be copied into a filter and means itself there: a `*` at the end of a filter's
/// fingerprint stands for anything, and control characters are nothing to copy. They are percent-encoded, and so is `%`.
pub fn fingerprint_part(text: &str) -> String {
    let mut part = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '%') || character.is_control() {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(part, "%{byte:02X}");
            }
        } else {
            part.push(character);
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_filter_would_misread_is_encoded() {
        for (text, part) in [
            ("Spring 2026/ā", "Spring 2026/ā"),
            ("*", "%2A"),
            ("Sale*", "Sale%2A"),
            ("100%2A", "100%252A"),
            ("a\n\u{1b}\0", "a%0A%1B%00"),
            ("\u{9b}", "%C2%9B"),
        ] {
            assert_eq!(fingerprint_part(text), part);
        }
    }
}

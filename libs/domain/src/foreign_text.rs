//! Text of strangers, such that it can be shown: on a terminal, in a mail, in a sentence.

/// Text without what a terminal or a mail reader would obey: control characters, and what breaks or turns round a line, are
/// shown as U+FFFD.
#[must_use]
pub fn harmless(text: &str) -> String {
    text.chars().map(harmless_char).collect()
}

/// The character itself, or U+FFFD in place of one that would be obeyed.
#[must_use]
pub fn harmless_char(c: char) -> char {
    let obeyed = c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if obeyed { '\u{fffd}' } else { c }
}

/// Scheme, host and port of a URL: its path and query may hold what is nobody's business.
#[must_use]
pub fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return "an endpoint".to_owned();
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}")
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

    #[test]
    fn of_a_url_neither_credentials_nor_path_nor_query_are_shown() {
        for url in [
            "https://hooks.example:8443/t/secret?k=v#f",
            "https://u:p@hooks.example:8443?secret",
        ] {
            assert_eq!(origin(url), "https://hooks.example:8443");
        }
        assert_eq!(origin("secret"), "an endpoint");
    }
}

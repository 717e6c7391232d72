//! What names a reseller. There is no record of resellers here: one exists as soon as it is named.

/// The longest identifier.
pub const MAX_RESELLER_ID_BYTES: usize = 64;

/// What an identifier looks like, in the words of an error message.
pub const RESELLER_ID_FORM: &str = "1 to 64 letters, digits, dots, underscores, colons and hyphens";

/// Whether a text may name a reseller: [`RESELLER_ID_FORM`], all of them ASCII.
///
/// Nothing in it needs escaping in a path, a log line or a message, and a slash can follow it in a longer key.
pub fn is_reseller_id(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=MAX_RESELLER_ID_BYTES).contains(&text.len()) && text.bytes().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_of_the_allowed_form_name_a_reseller() {
        for id in ["a", "acme", "Acme_7.lv", "eu:1234-5", "-", &"x".repeat(64)] {
            assert!(is_reseller_id(id), "{id}");
        }
    }

    #[test]
    fn everything_else_is_no_id() {
        for text in [
            "",
            " ",
            "a b",
            "a/b",
            "a\n",
            "žīle",
            "a\0",
            "a%20",
            &"x".repeat(65),
        ] {
            assert!(!is_reseller_id(text), "{text:?}");
        }
    }
}

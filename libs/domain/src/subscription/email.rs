//! What counts as an e-mail address: what HTML's own input field accepts, and no longer than SMTP takes.
//!
//! Quoted local parts, comments and addresses with names are deliberately not accepted: they are legal, never meant, and a
//! way to smuggle something into a header.

/// Longest address, in bytes.
const MAX_BYTES: usize = 254;
/// Longest part before the @, in bytes.
const LOCAL_MAX_BYTES: usize = 64;
/// Longest part of a name between two dots, in bytes.
const LABEL_MAX_BYTES: usize = 63;

/// Whether mail can be sent there, as far as that shows.
pub(super) fn is_address(text: &str) -> bool {
    text.len() <= MAX_BYTES
        && text
            .split_once('@')
            .is_some_and(|(local, domain)| is_local(local) && is_domain(domain))
}

fn is_local(local: &str) -> bool {
    local.len() <= LOCAL_MAX_BYTES
        && local.split('.').all(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&byte))
        })
}

/// With a dot: a name without one is a machine of the mail server's own network, root's mailbox among others.
fn is_domain(domain: &str) -> bool {
    domain.contains('.') && domain.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    (1..=LABEL_MAX_BYTES).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn ordinary_addresses_are_accepted() {
        for text in [
            "ops@example.com",
            "a.b+c_d@mail.example.co.uk",
            "o'neil@x-y.example",
        ] {
            assert!(is_address(text), "{text}");
        }
    }

    #[test]
    fn what_could_be_more_than_one_address_is_refused() {
        let long = format!("{}@example.com", "a".repeat(65));
        let longer = format!("a@{}example.com", "a.".repeat(130));
        for text in [
            "",
            "@",
            "ops",
            "ops@",
            "root@localhost",
            "@example.com",
            "ops@example..com",
            "ops@-example.com",
            "ops@example.com.",
            ".ops@example.com",
            "a..b@example.com",
            "a@b@example.com",
            "Ops <ops@example.com>",
            "\"a b\"@example.com",
            "ops@example.com,other@example.com",
            "ops@example.com\r\nBcc: x@example.com",
            " ops@example.com",
            "ops@ex\u{e4}mple.com",
            &long,
            &longer,
        ] {
            assert!(!is_address(text), "{text:?}");
        }
    }
}

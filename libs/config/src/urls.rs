//! Several URLs in one value, separated by commas. Which of them is used, and when, is decided by who connects.

use crate::Secret;

const SEPARATOR: char = ',';
const AMQP: [&str; 2] = ["amqp://", "amqps://"];

/// Each URL by itself. A comma separates only where a URL begins behind it: a password may hold one, too. The broker's library
/// reads them by the same rule.
fn each(urls: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(urls);
    std::iter::from_fn(move || {
        let text = rest?;
        let border = text
            .match_indices(SEPARATOR)
            .map(|(at, _)| at)
            .find(|at| begins_a_url(&text[at + SEPARATOR.len_utf8()..]));
        rest = border.map(|at| &text[at + SEPARATOR.len_utf8()..]);
        Some(text[..border.unwrap_or(text.len())].trim())
    })
}

fn begins_a_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.trim_start());
    scheme.is_some_and(|scheme| !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_lowercase()))
}

/// Whether these are URLs of broker nodes, each of them whole.
pub(crate) fn are_amqp(urls: &str) -> bool {
    each(urls).all(|url| {
        let rest = AMQP.iter().find_map(|scheme| url.strip_prefix(scheme));
        rest.is_some_and(|rest| {
            let location = rest.rsplit('@').next().unwrap_or_default();
            // What follows the host and port may hold a comma, as a password may.
            let location = location.split(['/', '?']).next().unwrap_or_default();
            !location.is_empty() && !location.contains(SEPARATOR)
        })
    })
}

/// The URLs without what is secret in them.
pub(crate) fn masked(urls: &str) -> String {
    let masked: Vec<String> = each(urls).map(|url| Secret::new(url).masked_url()).collect();
    masked.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_nodes_are_accepted_when_each_is_a_whole_url() {
        for urls in [
            "amqp://u:p@one:1/%2f",
            "amqp://u:p@one:1/%2f,amqps://u:p@two:2/%2f",
            "amqp://one, amqp://two",
            "amqp://u:a,b@one,amqp://two",
            "amqp://one/a,b",
            "amqp://one?x=a,b",
        ] {
            assert!(are_amqp(urls), "{urls}");
        }
        for urls in [
            "",
            "amqp://",
            "amqp://one,",
            "amqp://one,two",
            "amqp://u:p@one:1,two:2/%2f",
            "amqp://one,http://two",
            "postgres://one,amqp://two",
        ] {
            assert!(!are_amqp(urls), "{urls}");
        }
    }

    #[test]
    fn every_password_is_masked() {
        for (urls, shown) in [
            ("amqp://u:hunter2@one/v", "amqp://***@one/v"),
            (
                "amqp://u:hunter2@one:1/%2f, amqps://u:hunter3@two:2/%2f",
                "amqp://***@one:1/%2f,amqps://***@two:2/%2f",
            ),
            ("amqp://u:hunt,er@one,amqp://two", "amqp://***@one,amqp://two"),
        ] {
            assert_eq!(masked(urls), shown);
        }
    }
}

//! What went wrong, in a few words that people understand without the book.

use domain::dead_letter::FailureClass;

/// Kinds that are looked for, as the filter takes them, in words; of one answer it is `delivery/http/503*`.
pub(super) const KINDS: [(&str, &str); 15] = [
    ("delivery/http/5*", "the endpoint fails (5xx)"),
    ("delivery/http/4*", "the endpoint refuses (4xx)"),
    ("delivery/http/3*", "the endpoint redirects"),
    ("delivery/timeout", "the endpoint does not answer in time"),
    ("delivery/connect", "no connection to the endpoint"),
    ("delivery/dns", "the endpoint's name cannot be resolved"),
    ("delivery/tls", "no secure connection to the endpoint"),
    ("delivery/egress", "the endpoint's address may not be called"),
    ("delivery/expired", "it waited for too long"),
    ("swrve/5*", "Swrve fails (5xx)"),
    ("swrve/4*", "Swrve refuses (4xx)"),
    ("swrve/unreachable", "Swrve does not answer"),
    ("prototype-key/*", "no push key is configured"),
    ("broker/*", "the broker gave the message up"),
    (
        "recovery/possibly-sent/*",
        "it may have been sent before the database was restored",
    ),
];

/// A fingerprint in words.
pub(in crate::console) fn cause(fingerprint: &str) -> String {
    let rest = |skip| fingerprint.split('/').skip(skip).collect::<Vec<_>>().join(", ");
    let code = |place| fingerprint.split('/').nth(place).unwrap_or_default().to_owned();
    match FailureClass::of(fingerprint) {
        FailureClass::Dns => "the endpoint's name cannot be resolved".to_owned(),
        FailureClass::Tls => "no secure connection to the endpoint".to_owned(),
        FailureClass::Connect => "no connection to the endpoint".to_owned(),
        FailureClass::Timeout => "the endpoint does not answer in time".to_owned(),
        FailureClass::Protocol => "the endpoint's answer is no HTTP".to_owned(),
        FailureClass::Egress => "the endpoint's address may not be called".to_owned(),
        FailureClass::Http3xx => format!("the endpoint redirects: {}", rest(2)),
        FailureClass::Http4xx => format!("the endpoint refuses: {}", rest(2)),
        FailureClass::Http5xx => format!("the endpoint fails: {}", rest(2)),
        FailureClass::HttpOther => format!("the endpoint answers {}", rest(2)),
        FailureClass::Swrve4xx => format!("Swrve refuses: {}", rest(1)),
        FailureClass::Swrve5xx => format!("Swrve fails: {}", code(1)),
        FailureClass::SwrveOther => format!("Swrve answers {}", rest(1)),
        FailureClass::SwrveUnreachable => "Swrve does not answer".to_owned(),
        FailureClass::PrototypeKey => format!("no push key is configured: {}", rest(1)),
        FailureClass::LeaseLost => "the process that was sending it did not come back".to_owned(),
        FailureClass::PossiblySent => "it may have been sent before the database was restored".to_owned(),
        FailureClass::Expired => "it waited for too long".to_owned(),
        FailureClass::Cancelled => "an operator cancelled it".to_owned(),
        FailureClass::SubscriptionEnded => "its subscription was deactivated or deleted".to_owned(),
        FailureClass::Broker => format!("the broker gave the message up: {}", rest(1).replace('_', " ")),
        FailureClass::Malformed => "a message that cannot be read".to_owned(),
        FailureClass::Internal => "a failure of Postrider itself".to_owned(),
        FailureClass::Unknown if fingerprint.is_empty() => "unknown".to_owned(),
        FailureClass::Unknown => fingerprint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_that_is_suggested_finds_what_it_says() {
        for (kind, said) in KINDS {
            let (words, _) = said.split_once(" (").unwrap_or((said, ""));
            let one = cause(&kind.replace('*', "03"));
            assert!(one.starts_with(words), "{kind}: {one}");
        }
    }

    #[test]
    fn a_fingerprint_says_what_went_wrong() {
        for (fingerprint, words) in [
            ("delivery/http/503/html", "the endpoint fails: 503, html"),
            ("delivery/connect", "no connection to the endpoint"),
            ("swrve/503", "Swrve fails: 503"),
            ("swrve/400/1042", "Swrve refuses: 400, 1042"),
            (
                "prototype-key/IOS/Summer sale",
                "no push key is configured: IOS, Summer sale",
            ),
            (
                "broker/delivery_limit",
                "the broker gave the message up: delivery limit",
            ),
            ("of/a/later/version", "of/a/later/version"),
            ("", "unknown"),
        ] {
            assert_eq!(cause(fingerprint), words);
        }
    }
}

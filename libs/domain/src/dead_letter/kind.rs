//! What a fingerprint means, in the few words that people sort failures by.
//!
//! Fingerprints are made where failures are judged; here they are only read. One that is unknown, as of a later version,
//! is no error.

use crate::named;

/// The class of a failure.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum FailureClass {
    /// A name could not be resolved.
    Dns,
    /// No secure connection.
    Tls,
    /// No connection.
    Connect,
    /// No answer in time.
    Timeout,
    /// What came was no HTTP.
    Protocol,
    /// The address is not one that may be dialled.
    Egress,
    /// The endpoint redirects.
    #[strum(serialize = "http-3xx")]
    Http3xx,
    /// The endpoint refuses.
    #[strum(serialize = "http-4xx")]
    Http4xx,
    /// The endpoint fails.
    #[strum(serialize = "http-5xx")]
    Http5xx,
    /// The endpoint answered with a status of no meaning.
    HttpOther,
    /// Swrve refuses.
    #[strum(serialize = "swrve-4xx")]
    Swrve4xx,
    /// Swrve fails.
    #[strum(serialize = "swrve-5xx")]
    Swrve5xx,
    /// Swrve answered with another status.
    SwrveOther,
    /// Swrve did not answer.
    SwrveUnreachable,
    /// No push key is configured for the push's prototype.
    PrototypeKey,
    /// The process that was sending it did not come back.
    LeaseLost,
    /// It may have been sent after the moment that the database was restored to.
    PossiblySent,
    /// It waited for too long.
    Expired,
    /// An operator cancelled it.
    Cancelled,
    /// Its subscription was deactivated or deleted.
    SubscriptionEnded,
    /// The broker gave the message up.
    Broker,
    /// A message that cannot be read.
    Malformed,
    /// A failure of ours.
    Internal,
    /// Nothing that this version knows.
    Unknown,
}

named!(FailureClass, "class of failures");

impl FailureClass {
    /// The class of a fingerprint.
    pub fn of(fingerprint: &str) -> Self {
        let mut parts = fingerprint.split('/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some("delivery"), Some(what), rest) => Self::of_delivery(what, rest),
            (Some("swrve"), Some("unreachable"), _) => Self::SwrveUnreachable,
            (Some("swrve"), Some(status), _) => match hundred(status) {
                Some(4) => Self::Swrve4xx,
                Some(5) => Self::Swrve5xx,
                Some(_) => Self::SwrveOther,
                None => Self::Unknown,
            },
            (Some("prototype-key"), Some(_), _) => Self::PrototypeKey,
            (Some("recovery"), Some("possibly-sent"), _) => Self::PossiblySent,
            (Some("other"), Some("lease-lost"), _) => Self::LeaseLost,
            (Some("other"), Some("cancelled"), _) => Self::Cancelled,
            (Some("other"), Some("internal"), _) => Self::Internal,
            (Some("broker"), Some("malformed"), _) => Self::Malformed,
            (Some("broker"), Some(_), _) => Self::Broker,
            _ => Self::Unknown,
        }
    }

    fn of_delivery(what: &str, rest: Option<&str>) -> Self {
        match what {
            "dns" => Self::Dns,
            "tls" => Self::Tls,
            "connect" => Self::Connect,
            "timeout" => Self::Timeout,
            "protocol" => Self::Protocol,
            "egress" => Self::Egress,
            "lease-lost" => Self::LeaseLost,
            "possibly-sent" => Self::PossiblySent,
            "expired" => Self::Expired,
            "cancelled" => Self::Cancelled,
            "subscription-deactivated" | "subscription-deleted" => Self::SubscriptionEnded,
            "other" => Self::Internal,
            "http" => match rest.and_then(hundred) {
                Some(3) => Self::Http3xx,
                Some(4) => Self::Http4xx,
                Some(5) => Self::Http5xx,
                Some(_) => Self::HttpOther,
                None => Self::Unknown,
            },
            _ => Self::Unknown,
        }
    }
}

/// The first digit of a status code.
fn hundred(status: &str) -> Option<u16> {
    let status: u16 = status.parse().ok()?;
    (100..1000).contains(&status).then_some(status / 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::{ClientErrors, DeliveryOutcome, FailureKind};
    use crate::push::{Platform, SendOutcome};

    #[test]
    fn each_fingerprint_has_its_class() {
        for (fingerprint, class) in [
            ("delivery/dns", "dns"),
            ("delivery/tls", "tls"),
            ("delivery/connect", "connect"),
            ("delivery/timeout", "timeout"),
            ("delivery/protocol", "protocol"),
            ("delivery/egress", "egress"),
            ("delivery/other", "internal"),
            ("delivery/lease-lost", "lease-lost"),
            ("delivery/possibly-sent", "possibly-sent"),
            ("recovery/possibly-sent/queued", "possibly-sent"),
            ("delivery/expired", "expired"),
            ("delivery/cancelled", "cancelled"),
            ("delivery/subscription-deactivated", "subscription-ended"),
            ("delivery/subscription-deleted", "subscription-ended"),
            ("delivery/http/301/empty", "http-3xx"),
            ("delivery/http/404", "http-4xx"),
            ("delivery/http/503/html", "http-5xx"),
            ("delivery/http/999/text", "http-other"),
            ("swrve/400/1042", "swrve-4xx"),
            ("swrve/503", "swrve-5xx"),
            ("swrve/301/301", "swrve-other"),
            ("swrve/unreachable", "swrve-unreachable"),
            ("prototype-key/IOS/Hello", "prototype-key"),
            ("prototype-key/ANDROID/a/b", "prototype-key"),
            ("other/lease-lost", "lease-lost"),
            ("other/cancelled", "cancelled"),
            ("other/internal", "internal"),
            ("broker/delivery_limit", "broker"),
            ("broker/malformed", "malformed"),
            ("unknown", "unknown"),
            ("", "unknown"),
            ("delivery", "unknown"),
            ("delivery/http", "unknown"),
            ("delivery/http/x", "unknown"),
            ("swrve/99999", "unknown"),
            ("swrve/12", "unknown"),
            ("of/a/later/version", "unknown"),
        ] {
            assert_eq!(FailureClass::of(fingerprint).as_str(), class, "{fingerprint}");
        }
    }

    #[test]
    fn whatever_a_verdict_writes_is_known_here() {
        let failed = FailureKind::ALL.map(|kind| DeliveryOutcome::Failed {
            kind,
            message: String::new(),
        });
        let answered = (300..=999).map(|status| DeliveryOutcome::Answered {
            status,
            retry_after: None,
            body: "<html>".to_owned(),
        });
        let deliveries = failed
            .into_iter()
            .chain(answered)
            .map(|outcome| outcome.classification(ClientErrors::Usual).fingerprint);
        let message = String::new;
        let sends = [
            SendOutcome::Refused {
                status: 503,
                code: None,
                message: message(),
            },
            SendOutcome::Unreachable { message: message() },
            SendOutcome::PrototypeKeyMissing {
                platform: Platform::Ios,
                prototype: None,
            },
            SendOutcome::Internal { chain: message() },
        ];
        for fingerprint in deliveries.chain(sends.map(|outcome| outcome.classification().fingerprint)) {
            let fingerprint = fingerprint.expect("a failure has a fingerprint");
            assert_ne!(
                FailureClass::of(&fingerprint),
                FailureClass::Unknown,
                "{fingerprint}"
            );
        }
    }
}

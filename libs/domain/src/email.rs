//! What resellers are told by e-mail.

use std::time::Duration;

use crate::named;

/// The occasion of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum EmailKind {
    /// Notifications were given up after all their retries.
    RetriesExhausted,
    /// A subscription is in another state.
    StateChanged,
    /// An endpoint did not answer its challenges.
    VerificationFailed,
    /// An endpoint refused notifications with a 4xx status, so that they failed at once.
    DeliveryRefused,
    /// A request for another quota was decided.
    QuotaDecided,
    /// The owner of an address has to say that it is theirs before it gets anything else.
    AddressConfirmation,
    /// Where or how a subscription is delivered to, or whom it tells, was changed.
    SecurityChanged,
    /// What an outage of an endpoint had given up was sent again by itself.
    DeliveriesRecovered,
}

named!(EmailKind, "kind of e-mail");

/// Where a mail stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum EmailStatus {
    /// It waits for its time.
    Pending,
    /// It is being given to the mail server.
    Sending,
    /// The mail server took it.
    Sent,
    /// It was refused, or grew too old.
    Failed,
}

named!(EmailStatus, "status of an e-mail");

/// How long a mail waits that could not be sent, after so many attempts: twice as long each time, up to sixteen times
/// `first`. A mail server that is away for long is then asked rarely, and mails still go out soon after it is back.
pub fn retry_delay(first: Duration, attempts: u32) -> Duration {
    const LONGEST: u32 = 16;
    let factor = 1_u32.checked_shl(attempts.saturating_sub(1)).unwrap_or(LONGEST);
    first.saturating_mul(factor.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_waits_twice_as_long_each_time_up_to_a_limit() {
        let minutes = |attempts| retry_delay(Duration::from_secs(60), attempts).as_secs() / 60;
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 6, 40, u32::MAX].map(minutes),
            [1, 1, 2, 4, 8, 16, 16, 16, 16]
        );
        assert_eq!(retry_delay(Duration::MAX, 9), Duration::MAX);
    }
}

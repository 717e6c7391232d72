//! What resellers are told by e-mail.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The occasion of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// Somebody has to say that an address is theirs before it gets anything else.
    AddressConfirmation,
    /// Where or how a subscription is delivered to, or whom it tells, was changed.
    SecurityChanged,
    /// What an outage of an endpoint had given up was sent again by itself.
    DeliveriesRecovered,
}

impl EmailKind {
    /// Every kind there is.
    pub const ALL: [Self; 8] = [
        Self::RetriesExhausted,
        Self::StateChanged,
        Self::VerificationFailed,
        Self::DeliveryRefused,
        Self::QuotaDecided,
        Self::AddressConfirmation,
        Self::SecurityChanged,
        Self::DeliveriesRecovered,
    ];

    /// The stored name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RetriesExhausted => "RETRIES_EXHAUSTED",
            Self::StateChanged => "STATE_CHANGED",
            Self::VerificationFailed => "VERIFICATION_FAILED",
            Self::DeliveryRefused => "DELIVERY_REFUSED",
            Self::QuotaDecided => "QUOTA_DECIDED",
            Self::AddressConfirmation => "ADDRESS_CONFIRMATION",
            Self::SecurityChanged => "SECURITY_CHANGED",
            Self::DeliveriesRecovered => "DELIVERIES_RECOVERED",
        }
    }
}

impl fmt::Display for EmailKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A stored kind that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of e-mail {0:?}")]
pub struct UnknownEmailKind(pub String);

impl FromStr for EmailKind {
    type Err = UnknownEmailKind;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
            .ok_or_else(|| UnknownEmailKind(name.to_owned()))
    }
}

/// How long a mail waits that could not be sent, after so many attempts: twice as long each time, up to sixteen times
/// `first`. A mail server that is away for long is then asked rarely, and mails still go out soon after it is back.
#[must_use]
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

    #[test]
    fn every_kind_is_read_as_it_is_stored() {
        for kind in EmailKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert!("GREETING".parse::<EmailKind>().is_err());
    }
}

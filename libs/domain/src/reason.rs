//! Why something waits, was moved or has ended, and why a subscription has its state: what is stored beside a status.
//!
//! CHECK constraints permit these names and no others, and a test compares the two. What is read and is none of them is an error that
//! names it. A name that is new is therefore permitted and read by one version, and written by a later one.

use std::fmt;
use std::str::FromStr;

use strum::IntoEnumIterator as _;

use crate::named;
use crate::names::UnknownName;

/// Why a push was moved by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum PushReason {
    /// It is sent again.
    Replayed,
    /// An operator does not want it sent any more.
    Cancelled,
}

named!(PushReason, "reason of a push");

/// Why a notification waits, was moved or has ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::EnumIter)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum NotificationReason {
    /// Waits in line: its subscription's quota of the day is used up.
    Quota,
    /// Waits in line for the requests per second.
    Rate,
    /// Waits in line: it could not be tried for want of something of our own.
    Postponed,
    /// Waits: its subscription has its share of the engine.
    Busy,
    /// Waits: its subscription is sent nothing but probes.
    Withheld,
    /// Waits: its subscription is paused, by its reseller or by an operator.
    Paused,
    /// Waits: its subscription's endpoint is not verified.
    Unverified,
    /// Is in the queue, and more of its subscription waits in the database.
    Backlog,
    /// Its reseller asked for it again.
    Resent,
    /// A replay, an operator or a recovery sends it again.
    Replayed,
    /// An operator does not want it sent any more.
    Cancelled,
    /// It waited for too long.
    Expired,
    /// Its subscription was deactivated.
    SubscriptionDeactivated,
    /// Its subscription was deleted.
    SubscriptionDeleted,
    /// Its last attempt failed; what failures of its kind share.
    #[strum(disabled)]
    Failure(String),
}

/// What the fingerprints of failed deliveries begin with.
const FAILURE: &str = "delivery/";

impl NotificationReason {
    /// Every one but failures, whose names are without number.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::iter()
    }

    /// The name, as it is stored and shown.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Failure(fingerprint) => fingerprint,
            named => named.into(),
        }
    }
}

impl fmt::Display for NotificationReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for NotificationReason {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with(FAILURE) {
            return Ok(Self::Failure(text.to_owned()));
        }
        Self::all()
            .find(|one| one.as_str() == text)
            .ok_or_else(|| UnknownName {
                what: "reason of a notification",
                found: text.to_owned(),
                known: format!(
                    "{} or {FAILURE}…",
                    Self::all()
                        .map(|one| one.to_string())
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            })
    }
}

/// Why a subscription has its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum StateReason {
    /// It is new.
    Created,
    /// Its endpoint answered its challenge.
    Verified,
    /// Every attempt has failed for days.
    Failing,
    /// An attempt succeeded after that.
    Recovered,
    /// Its endpoint redirects.
    Redirected,
    /// Its endpoint says that it is gone.
    Gone,
    /// Its reseller switched it on or off.
    ByReseller,
    /// Its reseller gave it another endpoint.
    EndpointChanged,
    /// Its endpoint has to answer a challenge again.
    VerificationRequested,
}

named!(StateReason, "reason of a subscription's state");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_a_notification_is_read_back_from_its_name() {
        let names: Vec<_> = NotificationReason::all().map(|one| one.to_string()).collect();
        assert_eq!(
            names.join(" "),
            "QUOTA RATE POSTPONED BUSY WITHHELD PAUSED UNVERIFIED BACKLOG RESENT REPLAYED CANCELLED EXPIRED \
             SUBSCRIPTION_DEACTIVATED SUBSCRIPTION_DELETED"
        );
        for reason in NotificationReason::all() {
            assert_eq!(reason.as_str().parse(), Ok(reason.clone()));
        }
        let failure: NotificationReason = "delivery/http/503/json".parse().unwrap();
        assert_eq!(
            failure,
            NotificationReason::Failure("delivery/http/503/json".to_owned())
        );
        assert_eq!(failure.to_string(), "delivery/http/503/json");
    }

    #[test]
    fn what_is_no_reason_is_named() {
        for text in ["", "QOUTA", "quota", "FAILURE", "swrve/503"] {
            let error = text.parse::<NotificationReason>().unwrap_err();
            assert_eq!(error.found, text);
        }
    }
}

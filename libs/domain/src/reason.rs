//! Why something waits, was moved or has ended, and why a subscription has its state: what is stored beside a status.
//!
//! CHECK constraints permit these names and no others, and a test compares the two. A name that is new is permitted and read by one version,
//! and written by a later one.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use strum::IntoEnumIterator as _;

use crate::dead_letter::FailureClass;
use crate::named;
use crate::notification::NotificationStatus;
use crate::subscription::HeldBack;

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

/// The names of those that are told of a notification that waits, but for its last failure.
pub const WAITS_FOR: [&str; 10] = [
    "QUOTA",
    "RATE",
    "POSTPONED",
    "BUSY",
    "WITHHELD",
    "PAUSED",
    "UNVERIFIED",
    "BACKLOG",
    "RESENT",
    "REPLAYED",
];

/// The names of those with which a notification has ended other than by its attempts: what lists are filtered by. Why one waits is told by more
/// than what is stored with it, see [`NotificationReason::told`].
pub const ENDED_FOR: [&str; 4] = [
    "CANCELLED",
    "EXPIRED",
    "SUBSCRIPTION_DEACTIVATED",
    "SUBSCRIPTION_DELETED",
];

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
    /// What failures of the kind of its last attempt share, such as `delivery/http/503/json`; or a name that this version does not know,
    /// which is no error: one odd row must not keep a page of others from being read.
    #[strum(disabled)]
    Other(String),
}

impl NotificationReason {
    /// Every one that has a name of its own.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::iter()
    }

    /// What is told as the reason of a notification, of which `stored` is stored: that it is paused, while a pause holds it back. What has
    /// held it back before, and does so no longer, stays stored until its turn comes, and is not told. The reason of one that is tried again
    /// stays its last failure. Of one that was delivered it is kept that it had waited for the quota, for its story, and that is no reason.
    pub fn told(stored: Option<Self>, status: NotificationStatus, held: HeldBack) -> Option<Self> {
        let is_paused = held.paused_by.is_some();
        if is_paused && status != NotificationStatus::Retry {
            return Some(Self::Paused);
        }
        stored.filter(|reason| match reason {
            Self::Paused => is_paused,
            Self::Unverified => held.is_unverified,
            Self::Quota => status != NotificationStatus::Sent,
            _ => true,
        })
    }

    /// Whether it was ended because it may have been sent after the moment that the database was restored to.
    pub fn is_possibly_sent(&self) -> bool {
        FailureClass::of(self.as_str()) == FailureClass::PossiblySent
    }

    /// The name, as it is stored and shown.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(text) => text,
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
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::all()
            .find(|one| one.as_str() == text)
            .unwrap_or_else(|| Self::Other(text.to_owned())))
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

impl StateReason {
    /// What that means, in few words.
    pub fn said(self) -> &'static str {
        match self {
            Self::Created => "it is new",
            Self::Verified => "its endpoint answered its challenge",
            Self::Failing => "every attempt has failed for days",
            Self::Recovered => "an attempt succeeded again",
            Self::Redirected => "its endpoint redirects",
            Self::Gone => "its endpoint says that it is gone",
            Self::ByReseller => "its reseller switched it on or off",
            Self::EndpointChanged => "it has another endpoint",
            Self::VerificationRequested => "its endpoint is to answer a challenge again",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::PausedBy;

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
        assert_eq!(
            names,
            [&WAITS_FOR[..], &ENDED_FOR].concat(),
            "it waits for one, or has ended for one"
        );
        let failure: NotificationReason = "delivery/http/503/json".parse().unwrap();
        assert_eq!(
            failure,
            NotificationReason::Other("delivery/http/503/json".to_owned())
        );
        assert_eq!(failure.to_string(), "delivery/http/503/json");
        assert!(!failure.is_possibly_sent());
        assert!(NotificationReason::Other("delivery/possibly-sent".to_owned()).is_possibly_sent());
    }

    #[test]
    fn what_holds_a_notification_back_is_the_reason_while_it_lasts_and_no_longer() {
        use NotificationReason::{Paused, Quota, Unverified};
        let (pending, retry) = (NotificationStatus::Pending, NotificationStatus::Retry);
        let nothing = HeldBack::default();
        let pause = HeldBack {
            paused_by: Some(PausedBy::Reseller),
            ..nothing
        };
        let challenge = HeldBack {
            is_unverified: true,
            ..nothing
        };
        for (stored, status, held, told) in [
            (None, pending, pause, Some(Paused)),
            (Some(Quota), NotificationStatus::Scheduled, pause, Some(Paused)),
            (Some(Quota), retry, pause, Some(Quota)),
            (Some(Paused), pending, nothing, None),
            (Some(Quota), pending, nothing, Some(Quota)),
            (Some(Quota), NotificationStatus::Sent, nothing, None),
            (None, pending, nothing, None),
            (Some(Unverified), pending, challenge, Some(Unverified)),
            (Some(Unverified), pending, pause, Some(Paused)),
            (Some(Unverified), pending, nothing, None),
            (Some(Unverified), retry, nothing, None),
        ] {
            assert_eq!(NotificationReason::told(stored, status, held), told);
        }
    }

    #[test]
    fn what_is_unknown_is_kept_as_it_is() {
        for text in ["", "QOUTA", "quota", "OTHER", "swrve/503"] {
            assert_eq!(text.parse(), Ok(NotificationReason::Other(text.to_owned())));
        }
    }
}

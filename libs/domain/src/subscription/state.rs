//! The states of a subscription. Whether the reseller has paused it is a separate matter.

use std::fmt;
use std::str::FromStr;

/// What a subscription gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubscriptionState {
    /// Nothing but challenges, until its endpoint has answered one.
    PendingVerification,
    /// Everything that its filter lets through.
    Active,
    /// The same, although it has failed for days.
    Degraded,
    /// Nothing. Its events are stored and can be replayed.
    Deactivated,
}

impl SubscriptionState {
    /// Every state there is.
    pub const ALL: [Self; 4] = [
        Self::PendingVerification,
        Self::Active,
        Self::Degraded,
        Self::Deactivated,
    ];

    /// The name on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PendingVerification => "PENDING_VERIFICATION",
            Self::Active => "ACTIVE",
            Self::Degraded => "DEGRADED",
            Self::Deactivated => "DEACTIVATED",
        }
    }

    /// Whether events become notifications.
    #[must_use]
    pub fn receives(self) -> bool {
        matches!(self, Self::Active | Self::Degraded)
    }
}

impl fmt::Display for SubscriptionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A stored state that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown subscription state {0:?}")]
pub struct UnknownSubscriptionState(pub String);

impl FromStr for SubscriptionState {
    type Err = UnknownSubscriptionState;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == name)
            .ok_or_else(|| UnknownSubscriptionState(name.to_owned()))
    }
}

//! What a reseller can ask for that takes its time: a higher quota, and missed events once more.

use std::fmt;
use std::str::FromStr;

/// Where a quota request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuotaRequestStatus {
    /// Nobody has decided it yet.
    Requested,
    /// The quota was raised.
    Approved,
    /// It was not.
    Denied,
}

impl QuotaRequestStatus {
    /// Every status there is.
    pub const ALL: [Self; 3] = [Self::Requested, Self::Approved, Self::Denied];

    /// The name on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "REQUESTED",
            Self::Approved => "APPROVED",
            Self::Denied => "DENIED",
        }
    }
}

impl fmt::Display for QuotaRequestStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A status of a quota request that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown status {0:?}: use REQUESTED, APPROVED or DENIED")]
pub struct UnknownQuotaRequestStatus(pub String);

impl FromStr for QuotaRequestStatus {
    type Err = UnknownQuotaRequestStatus;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == name)
            .ok_or_else(|| UnknownQuotaRequestStatus(name.to_owned()))
    }
}

/// Where a replay stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplayStatus {
    /// Goes on, or waits for its subscription to be active.
    Running,
    /// Has been through all of its events.
    Completed,
    /// Was stopped before.
    Cancelled,
}

impl ReplayStatus {
    /// Every status there is.
    pub const ALL: [Self; 3] = [Self::Running, Self::Completed, Self::Cancelled];

    /// The name on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Cancelled => "CANCELLED",
        }
    }
}

impl fmt::Display for ReplayStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A status of a replay that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown replay status {0:?}")]
pub struct UnknownReplayStatus(pub String);

impl FromStr for ReplayStatus {
    type Err = UnknownReplayStatus;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == name)
            .ok_or_else(|| UnknownReplayStatus(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_read_back_from_its_name() {
        for status in QuotaRequestStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        for status in ReplayStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert!("requested".parse::<QuotaRequestStatus>().is_err());
        assert!("".parse::<ReplayStatus>().is_err());
    }
}

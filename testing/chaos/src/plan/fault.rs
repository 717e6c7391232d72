//! One thing that goes wrong: something about what runs, about who receives, or something that an operator or a reseller does.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cluster::ClusterFault;

/// How a receiver behaves for a while, towards every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// It answers with this status.
    Answers(u16),
    /// It takes requests and answers none.
    Hangs,
    /// It closes connections instead of answering.
    HangsUp,
    /// It answers so many milliseconds late.
    IsSlow(u64),
}

/// A lane of the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// Pushes.
    Push,
    /// Notifications.
    Reseller,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// To what runs.
    Cluster(ClusterFault),
    /// Swrve behaves in some way.
    Swrve {
        /// Which.
        behaviour: Behaviour,
        /// How long.
        lasts: Duration,
    },
    /// The endpoints of resellers do.
    Receivers {
        /// Which.
        behaviour: Behaviour,
        /// How long.
        lasts: Duration,
    },
    /// An operator pauses a lane and lets it go on later.
    Pause {
        /// Which.
        lane: Lane,
        /// How long.
        lasts: Duration,
    },
    /// An operator replays all dead letters of a lane.
    ReplayDeadLetters {
        /// Of which.
        lane: Lane,
    },
    /// Resellers ask for some of their notifications once more, and for what they have missed since the beginning.
    SendAgain {
        /// Chooses which.
        choice: u64,
    },
    /// All user agents leave at once and come back at once.
    ReconnectStorm,
}

impl Lane {
    /// As the API calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Reseller => "reseller",
        }
    }
}

impl Fault {
    /// Its kind, as the command line and the report name it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Cluster(fault) => fault.kind(),
            Self::Swrve { .. } => "swrve",
            Self::Receivers { .. } => "receivers",
            Self::Pause { .. } => "pause",
            Self::ReplayDeadLetters { .. } => "replay-dead-letters",
            Self::SendAgain { .. } => "send-again",
            Self::ReconnectStorm => "reconnect-storm",
        }
    }
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answers(status) => write!(f, "answers {status}"),
            Self::Hangs => f.write_str("hangs"),
            Self::HangsUp => f.write_str("hangs up"),
            Self::IsSlow(millis) => write!(f, "is {millis} ms slow"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |lasts: &Duration| lasts.as_secs_f64();
        match self {
            Self::Cluster(fault) => {
                let text = serde_json::to_string(fault).map_err(|_| fmt::Error)?;
                write!(f, "{text}")
            }
            Self::Swrve { behaviour, lasts } => write!(f, "swrve {behaviour} for {:.3} s", seconds(lasts)),
            Self::Receivers { behaviour, lasts } => {
                write!(f, "receivers: each {behaviour} for {:.3} s", seconds(lasts))
            }
            Self::Pause { lane, lasts } => {
                write!(f, "pause of the lane {} for {:.3} s", lane.name(), seconds(lasts))
            }
            Self::ReplayDeadLetters { lane } => write!(f, "replay of the dead letters of {}", lane.name()),
            Self::SendAgain { choice } => write!(f, "resellers ask for notifications again ({choice:x})"),
            Self::ReconnectStorm => f.write_str("all user agents come back at once"),
        }
    }
}

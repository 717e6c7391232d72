//! What a message can be about.

use std::fmt;

/// What an [`Envelope`](super::Envelope) is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A push notification to be sent to Swrve.
    Push,
    /// A notification to be delivered to a reseller's endpoint.
    Notification,
}

impl Kind {
    /// Name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Notification => "notification",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        match name {
            "push" => Some(Self::Push),
            "notification" => Some(Self::Notification),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

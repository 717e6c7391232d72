//! The queues by name, and which exchange feeds each. Their arguments are the business of `topology`.

use std::fmt;

/// Feeds the queues of work.
pub(crate) const WORK_EXCHANGE: &str = "postrider";
/// Feeds the queues of dead letters.
pub(crate) const DEAD_EXCHANGE: &str = "postrider.dead";

/// A queue of the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// `push.ready`: pushes to be sent now.
    PushReady,
    /// `push.dead`: what the server refused to deliver any more, and what consumers could not read.
    PushDead,
    /// `reseller.ready`: notifications whose first attempt is to be made now.
    ResellerReady,
    /// `reseller.retry`: notifications to be tried again now. Apart from the first attempts, so that receivers
    /// that fail never slow those down.
    ResellerRetry,
    /// `reseller.dead`: as `push.dead`, for both reseller queues.
    ResellerDead,
}

impl Queue {
    /// Every queue.
    pub const ALL: [Self; 5] = [
        Self::PushReady,
        Self::PushDead,
        Self::ResellerReady,
        Self::ResellerRetry,
        Self::ResellerDead,
    ];

    /// Name without the prefix of an installation; also the routing key.
    pub fn name(self) -> &'static str {
        match self {
            Self::PushReady => "push.ready",
            Self::PushDead => "push.dead",
            Self::ResellerReady => "reseller.ready",
            Self::ResellerRetry => "reseller.retry",
            Self::ResellerDead => "reseller.dead",
        }
    }

    fn exchange(self) -> &'static str {
        match self {
            Self::PushReady | Self::ResellerReady | Self::ResellerRetry => WORK_EXCHANGE,
            Self::PushDead | Self::ResellerDead => DEAD_EXCHANGE,
        }
    }

    /// Name in an installation with `prefix`.
    pub(crate) fn full_name(self, prefix: &str) -> String {
        format!("{prefix}{}", self.name())
    }

    /// Name of the exchange that feeds it, in an installation with `prefix`.
    pub(crate) fn full_exchange(self, prefix: &str) -> String {
        format!("{prefix}{}", self.exchange())
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

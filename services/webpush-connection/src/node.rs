//! What the connections of a node share.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use chrono::{DateTime, SubsecRound as _, Utc};
use domain::clock::Clock;
use domain::month::Month;
use http_api::AddressLimit;
use lifecycle::TaskGroup;
use store::Store;

use crate::broadcasts::Broadcasts;
use crate::connection::{Moment, Rules};
use crate::endpoints::Endpoints;
use crate::metrics::Metrics;
use crate::registry::Registry;

/// The state of a node.
pub(crate) struct Node {
    /// The URL of its router port, by which it stands in the rows of its clients.
    pub(crate) name: String,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) registry: Registry,
    pub(crate) rules: Rules,
    pub(crate) endpoints: Endpoints,
    pub(crate) broadcasts: ArcSwap<Broadcasts>,
    /// Most notifications that wait to be sent to one client.
    pub(crate) queue_capacity: usize,
    /// Most channels of a client.
    pub(crate) max_channels: u32,
    /// Registrations of each address.
    pub(crate) registrations: AddressLimit,
    /// Longest wait for an acknowledgement before the sender has to store the message.
    pub(crate) ack_wait: Duration,
    /// The connections.
    pub(crate) sessions: TaskGroup,
    pub(crate) metrics: Metrics,
}

impl Node {
    /// The present time, as precise as the database keeps it.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now().trunc_subsecs(6)
    }

    /// The present month.
    pub(crate) fn month(&self) -> Month {
        Month::containing(self.clock.now())
    }

    /// Has the state machine of a connection see the present.
    pub(crate) fn at_this_moment<T>(&self, see: impl FnOnce(Moment<'_>) -> T) -> T {
        see(Moment {
            rules: &self.rules,
            at: tokio::time::Instant::now(),
            month: self.month(),
            broadcasts: &self.broadcasts.load(),
        })
    }
}

//! What every job is given.

use std::sync::Arc;
use std::time::Duration;

use broker::Broker;
use config::Config;
use domain::clock::Clock;
use domain::push::queue_lease;
use store::{Lane, Store};

pub(crate) struct Context {
    pub(crate) config: Arc<Config>,
    pub(crate) store: Store,
    pub(crate) broker: Broker,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Context {
    /// Whether something that waits for `lane` may be put into a queue: not while it is paused, when it would wait there
    /// just as long, and longer than its lease.
    pub(crate) async fn may_promote(&self, lane: Lane) -> Result<bool, store::Error> {
        Ok(self.broker.publisher().takes_messages() && !self.store.lane_is_paused(lane).await?)
    }

    /// How long a promoted push may be in the queue before it is taken for lost.
    pub(crate) fn queue_lease(&self) -> Duration {
        queue_lease(self.config.push.queue.capacity, self.config.swrve.delay)
    }
}

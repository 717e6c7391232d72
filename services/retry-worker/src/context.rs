//! What every job is given.

use std::sync::Arc;
use std::time::Duration;

use broker::Broker;
use config::Config;
use domain::clock::Clock;
use domain::push::queue_lease;
use store::Store;

pub(crate) struct Context {
    pub(crate) config: Arc<Config>,
    pub(crate) store: Store,
    pub(crate) broker: Broker,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Context {
    /// How long a promoted push may be in the queue before it is taken for lost.
    pub(crate) fn queue_lease(&self) -> Duration {
        queue_lease(self.config.push.queue.capacity, self.config.swrve.delay)
    }
}

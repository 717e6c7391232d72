//! What every job is given.

use std::sync::Arc;
use std::time::Duration;

use broker::Broker;
use config::Config;
use domain::clock::{CLOCKS_APART_MAX, Clock};
use domain::push::queue_lease;
use store::{Cutoff, Lane, Store};

use crate::periodic::JobError;

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

    /// The time before which everything is older than `age`, for what drops, expires or forgets: by the clock that is behind.
    ///
    /// # Errors
    ///
    /// [`JobError::ClocksApart`] when the clock of this process and that of the database differ by more than
    /// [`CLOCKS_APART_MAX`]: one of them is wrong, and what would be lost can wait until it is right again.
    pub(crate) async fn cutoff(&self, age: Duration) -> Result<Cutoff, JobError> {
        let cutoff = self.store.cutoff(self.clock.now(), age).await?;
        let ahead = cutoff.clock_ahead();
        if ahead.abs() > CLOCKS_APART_MAX {
            return Err(JobError::ClocksApart {
                seconds: ahead.num_seconds(),
            });
        }
        Ok(cutoff)
    }

    /// How long a promoted push may be in the queue before it is taken for lost.
    pub(crate) fn queue_lease(&self) -> Duration {
        queue_lease(self.config.push.queue.capacity, self.config.swrve.delay)
    }
}

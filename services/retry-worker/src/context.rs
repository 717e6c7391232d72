//! What every job is given.

use std::sync::Arc;
use std::time::Duration;

use broker::{Broker, Queue};
use chrono::{DateTime, Utc};
use config::Config;
use domain::clock::{CLOCKS_APART_MAX, Clock};
use domain::push::queue_lease;
use store::{Cutoff, Lane, Store};

use crate::periodic::JobError;

pub(crate) struct Context {
    pub(crate) config: Arc<Config>,
    pub(crate) store: Store,
    /// For what is consumed and looked at.
    pub(crate) broker: Broker,
    pub(crate) publishing: Publishing,
    pub(crate) clock: Arc<dyn Clock>,
}

/// What is promoted goes to each queue by a connection of its own, so that a queue that does not confirm is felt by none of the
/// others.
#[derive(Clone)]
pub(crate) struct Publishing {
    pushes: Broker,
    first_attempts: Broker,
    retries: Broker,
}

impl Publishing {
    pub(crate) fn open(config: &Config, name: &str) -> Self {
        let open = |queue: Queue| runtime::connections::open_broker(config, &format!("{name} {queue}"));
        Self {
            pushes: open(Queue::PushReady),
            first_attempts: open(Queue::ResellerReady),
            retries: open(Queue::ResellerRetry),
        }
    }

    /// The connection by which messages go to `queue`.
    pub(crate) fn to(&self, queue: Queue) -> &Broker {
        match queue {
            Queue::PushReady | Queue::PushDead => &self.pushes,
            Queue::ResellerReady | Queue::ResellerDead => &self.first_attempts,
            Queue::ResellerRetry => &self.retries,
        }
    }
}

impl IntoIterator for Publishing {
    type Item = Broker;
    type IntoIter = std::array::IntoIter<Broker, 3>;

    fn into_iter(self) -> Self::IntoIter {
        [self.pushes, self.first_attempts, self.retries].into_iter()
    }
}

impl Context {
    /// Whether something that waits for `lane` may be put into `queue`: not while it is paused, when it would wait there
    /// just as long, and longer than its lease.
    pub(crate) async fn may_promote(&self, lane: Lane, queue: Queue) -> Result<bool, store::Error> {
        let takes_messages = self.publishing.to(queue).publisher().takes_messages();
        Ok(takes_messages && !self.store.lane_is_paused(lane).await?)
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

    /// The time by the clock that is behind, this process's or the database's: for what a clock that is ahead would do too early, and
    /// one that is behind only does later.
    pub(crate) async fn present(&self) -> Result<DateTime<Utc>, store::Error> {
        Ok(self
            .store
            .cutoff(self.clock.now(), Duration::ZERO)
            .await?
            .before())
    }

    /// How long a promoted push may be in the queue before it is taken for lost.
    pub(crate) fn queue_lease(&self) -> Duration {
        queue_lease(self.config.push.queue.capacity, self.config.swrve.delay)
    }
}

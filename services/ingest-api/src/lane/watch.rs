//! The background look at the broker that opens the gates when there is room, and closes them when there is no broker.
//!
//! It deliberately reports neither the broker nor the database as missing: `runtime::connections` does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use broker::{Broker, ConnectionState, Queue};
use domain::clock::Clock;
use futures::future::join_all;
use lifecycle::{Condition, Shutdown};
use runtime::error_chain;
use store::Store;
use telemetry::Metric;

use crate::lane::gate::{Gate, Observation, Reason};

/// How often the broker is looked at while nothing is heard from it, and so how soon a gate may open again.
const INTERVAL: Duration = Duration::from_millis(250);

/// How long the database may take to say whether pushes wait.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// A gate with what has to be known before it may open.
pub(crate) struct WatchedGate {
    pub(crate) gate: Arc<Gate>,
    /// The connection by which its lane publishes.
    pub(crate) broker: Broker,
    pub(crate) queue: Queue,
    /// Length of the queue.
    pub(crate) capacity: u32,
    /// How long a push may have been `PENDING` without keeping the gate closed: SendPendingJob takes such a one at its next
    /// execution, and under a steady load there is always one.
    ///
    /// `None` for notifications: those of a paused or flooding subscription wait for as long as it is paused or floods,
    /// which must not be felt by the others, and the job that promotes them gives every subscription its share.
    pub(crate) patience: Option<Duration>,
    /// Whether it is open.
    pub(crate) metric: Metric,
}

/// Watches until it is told to stop.
pub(crate) struct GateWatch {
    pub(crate) store: Store,
    pub(crate) gates: Vec<WatchedGate>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Holds as soon as every queue was looked at for the first time, so that a caller told "ready" finds the gates open
    /// when nothing waits.
    pub(crate) seen: Condition,
}

impl GateWatch {
    /// Each gate by itself: what is not known of one queue must not keep the gate of another as it is.
    pub(crate) async fn run(self, stop: Shutdown) {
        let unseen = AtomicUsize::new(self.gates.len());
        let watching = join_all(self.gates.iter().map(|watched| self.watch(watched, &unseen)));
        tokio::select! {
            () = stop.cancelled() => {}
            _ = watching => {}
        }
    }

    async fn watch(&self, watched: &WatchedGate, unseen: &AtomicUsize) {
        let mut state = watched.broker.state();
        let mut seen = false;
        loop {
            let now = state.borrow_and_update().clone();
            let known = self.look(watched, &now).await;
            if known && !std::mem::replace(&mut seen, true) && unseen.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.seen.ready();
            }
            tokio::select! {
                changed = state.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    /// Whether all that the gate depends on is known.
    async fn look(&self, watched: &WatchedGate, state: &ConnectionState) -> bool {
        let known = if state.is_connected() {
            watched.gate.is_open() || self.try_to_open(watched).await.is_some()
        } else {
            watched.gate.close(Reason::BrokerAway);
            false
        };
        watched.metric.set(u8::from(watched.gate.is_open()));
        known
    }

    /// `None` when what has to be known could not be found out.
    async fn try_to_open(&self, watched: &WatchedGate) -> Option<()> {
        let version = watched.gate.version();
        let queued = match watched.broker.depth(watched.queue).await {
            Ok(depth) => depth.messages,
            Err(error) => {
                tracing::debug!(error = error_chain(&error), queue = %watched.queue, "a queue's length is not known");
                return None;
            }
        };
        let waiting = match watched.patience {
            Some(patience) => self.longest_wait().await? > patience,
            None => false,
        };
        let observation = Observation {
            queued,
            capacity: watched.capacity,
            waiting,
        };
        watched.gate.open(version, &observation);
        Some(())
    }

    /// How long the oldest `PENDING` push has waited.
    async fn longest_wait(&self) -> Option<Duration> {
        match store::within(ANSWER_LIMIT, self.store.backlog()).await {
            Ok(backlog) => {
                let waited = backlog.oldest_pending.map(|since| self.clock.now() - since);
                Some(waited.and_then(|waited| waited.to_std().ok()).unwrap_or_default())
            }
            Err(error) => {
                tracing::debug!(error = error_chain(&error), "not known whether pushes wait");
                None
            }
        }
    }
}

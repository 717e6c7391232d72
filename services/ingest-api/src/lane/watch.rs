//! The background look at the broker that opens the gates when there is room, and closes them when there is no broker.
//!
//! It deliberately reports neither the broker nor the database as missing: `vitals` does.

use std::sync::Arc;
use std::time::Duration;

use bootstrap::error_chain;
use broker::{Broker, ConnectionState, Queue};
use domain::clock::Clock;
use lifecycle::{Condition, Shutdown};
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
    pub(crate) broker: Broker,
    pub(crate) store: Store,
    pub(crate) gates: Vec<WatchedGate>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Holds as soon as every queue was looked at for the first time, so that whoever was told "ready" finds the gates open
    /// when nothing waits.
    pub(crate) seen: Condition,
}

impl GateWatch {
    pub(crate) async fn run(self, stop: Shutdown) {
        let mut state = self.broker.state();
        let watching = async {
            loop {
                let now = state.borrow_and_update().clone();
                self.look(&now).await;
                tokio::select! {
                    changed = state.changed() => if changed.is_err() { return },
                    () = tokio::time::sleep(INTERVAL) => {}
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = watching => {}
        }
    }

    async fn look(&self, state: &ConnectionState) {
        let mut known = 0;
        for watched in &self.gates {
            if !state.is_connected() {
                watched.gate.close(Reason::BrokerAway);
            } else if watched.gate.is_open() || self.try_to_open(watched).await.is_some() {
                known += 1;
            }
            watched.metric.set(u8::from(watched.gate.is_open()));
        }
        if known == self.gates.len() {
            self.seen.ready();
        }
    }

    /// `None` when what has to be known could not be found out.
    async fn try_to_open(&self, watched: &WatchedGate) -> Option<()> {
        let sighting = watched.gate.sight();
        let queued = match self.broker.depth(watched.queue).await {
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
        watched.gate.open(sighting, &observation);
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

//! The background look at the broker that opens the gate when there is room, and closes it when there is no broker.
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

use crate::gate::{Gate, Observation, Reason};

/// How often the broker is looked at while nothing is heard from it, and so how soon the gate may open again.
const INTERVAL: Duration = Duration::from_millis(250);

/// How long the database may take to say whether pushes wait.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Watches until it is told to stop.
pub(crate) struct GateWatch {
    pub(crate) broker: Broker,
    pub(crate) store: Store,
    pub(crate) gate: Arc<Gate>,
    /// Length of the queue.
    pub(crate) capacity: u32,
    /// How long a push may have been `PENDING` without keeping the gate closed: SendPendingJob takes such a one at its next
    /// execution, and under a steady load there is always one.
    pub(crate) patience: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    /// Holds as soon as the queue was looked at for the first time, so that whoever was told "ready" finds the gate open
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
        if !state.is_connected() {
            self.gate.close(Reason::BrokerAway);
        } else if !self.gate.is_open() && self.try_to_open().await.is_some() {
            self.seen.ready();
        }
        Metric::IngestQueueGateOpen.set(u8::from(self.gate.is_open()));
    }

    /// `None` when what has to be known could not be found out.
    async fn try_to_open(&self) -> Option<()> {
        let sighting = self.gate.sight();
        let queued = match self.broker.depth(Queue::PushReady).await {
            Ok(depth) => depth.messages,
            Err(error) => {
                tracing::debug!(error = error_chain(&error), "the queue's length is not known");
                return None;
            }
        };
        let oldest = match store::within(ANSWER_LIMIT, self.store.backlog()).await {
            Ok(backlog) => backlog.oldest_pending,
            Err(error) => {
                tracing::debug!(error = error_chain(&error), "not known whether pushes wait");
                return None;
            }
        };
        let waited = oldest.and_then(|since| (self.clock.now() - since).to_std().ok());
        let observation = Observation {
            queued,
            capacity: self.capacity,
            waiting: waited.is_some_and(|waited| waited > self.patience),
        };
        self.gate.open(sighting, &observation);
        Some(())
    }
}

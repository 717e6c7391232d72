//! Handles on the metrics of the hot path, looked up once.

use std::time::Duration;

use domain::push::PushStatus;
use metrics::{Counter, Histogram};
use telemetry::Metric;

/// The metrics of receiving pushes.
pub(crate) struct Meters {
    receiving: Histogram,
    scheduled: Counter,
    immediate: Counter,
    went_pending: Counter,
    accepted: Counter,
}

impl Meters {
    /// Takes the handles. To be called after the recorder was installed.
    pub(crate) fn new() -> Self {
        Self {
            receiving: Metric::PushReceiving.histogram(&[]),
            scheduled: Metric::PushReceived.counter(&[("kind", "scheduled")]),
            immediate: Metric::PushReceived.counter(&[("kind", "immediate")]),
            went_pending: Metric::PushWentPending.counter(&[]),
            accepted: Metric::HttpRequests.counter(&[("route", "/push"), ("status", "202")]),
        }
    }

    /// A request was answered 202; tells whether that is counted.
    pub(crate) fn answered(&self, route: &str, elapsed: Duration) -> bool {
        let own = route == "/push";
        if own {
            self.accepted.increment(1);
            self.receiving.record(elapsed.as_secs_f64());
        }
        own
    }

    /// A push was stored with this status.
    pub(crate) fn stored(&self, status: PushStatus) {
        match status {
            PushStatus::Scheduled => self.scheduled.increment(1),
            PushStatus::Pending => {
                self.immediate.increment(1);
                self.went_pending.increment(1);
            }
            _ => self.immediate.increment(1),
        }
    }

    /// Pushes stored as `IN_MEMORY` did not get into the queue.
    pub(crate) fn went_pending(&self, pushes: u64) {
        self.went_pending.increment(pushes);
    }
}

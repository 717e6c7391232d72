//! Handles on the metrics of the hot path, looked up once.

use std::time::Duration;

use metrics::{Counter, Histogram};
use telemetry::Metric;

/// The metrics of receiving events.
pub(crate) struct Meters {
    receiving: Histogram,
    accepted: Counter,
    notifications: Counter,
    answered: Counter,
}

impl Meters {
    /// Takes the handles. To be called after the recorder was installed.
    pub(crate) fn new() -> Self {
        Self {
            receiving: Metric::EventReceiving.histogram(&[]),
            accepted: Metric::EventsAccepted.counter(&[]),
            notifications: Metric::NotificationsCreated.counter(&[]),
            answered: Metric::HttpRequests.counter(&[("route", "/events"), ("status", "202")]),
        }
    }

    /// A request was answered 202; tells whether that is counted.
    pub(crate) fn answered(&self, route: &str, elapsed: Duration) -> bool {
        if !matches!(route, "/events" | "/events/batch") {
            return false;
        }
        self.receiving.record(elapsed.as_secs_f64());
        let single = route == "/events";
        if single {
            self.answered.increment(1);
        }
        single
    }

    /// An event was stored with this many notifications.
    pub(crate) fn stored(&self, notifications: usize) {
        self.accepted.increment(1);
        self.notifications.increment(notifications as u64);
    }
}

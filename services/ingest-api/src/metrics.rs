//! Handles on the metrics of the hot path, looked up once.

use std::time::Duration;

use domain::push::PushStatus;
use metrics::{Counter, Histogram};
use telemetry::Metric;

/// The metrics of taking pushes and events in.
pub(crate) struct Metrics {
    push_receiving: Histogram,
    event_receiving: Histogram,
    pushes_answered: Counter,
    events_answered: Counter,
    scheduled: Counter,
    immediate: Counter,
    went_pending: Counter,
    events: Counter,
    notifications: Counter,
}

impl Metrics {
    /// Takes the handles. To be called after the recorder was installed.
    pub(crate) fn new() -> Self {
        let answered = |route| Metric::HttpRequests.counter(&[("route", route), ("status", "202")]);
        Self {
            push_receiving: Metric::PushReceiving.histogram(&[]),
            event_receiving: Metric::EventReceiving.histogram(&[]),
            pushes_answered: answered("/push"),
            events_answered: answered("/events"),
            scheduled: Metric::PushReceived.counter(&[("kind", "scheduled")]),
            immediate: Metric::PushReceived.counter(&[("kind", "immediate")]),
            went_pending: Metric::PushWentPending.counter(&[]),
            events: Metric::EventsAccepted.counter(&[]),
            notifications: Metric::NotificationsCreated.counter(&[]),
        }
    }

    /// A request was answered 202; tells whether that is counted.
    pub(crate) fn answered(&self, route: &str, elapsed: Duration) -> bool {
        let (receiving, answered) = match route {
            "/push" => (&self.push_receiving, Some(&self.pushes_answered)),
            "/events" => (&self.event_receiving, Some(&self.events_answered)),
            "/events/batch" => (&self.event_receiving, None),
            _ => return false,
        };
        receiving.record(elapsed.as_secs_f64());
        answered.inspect(|counter| counter.increment(1)).is_some()
    }

    /// A push was stored with this status.
    pub(crate) fn push(&self, status: PushStatus) {
        match status {
            PushStatus::Scheduled => self.scheduled.increment(1),
            _ => self.immediate.increment(1),
        }
        if status == PushStatus::Pending {
            self.went_pending(1);
        }
    }

    /// Pushes did not get into the queue.
    pub(crate) fn went_pending(&self, pushes: u64) {
        self.went_pending.increment(pushes);
    }

    /// An event was stored with this many notifications.
    pub(crate) fn event(&self, notifications: usize) {
        self.events.increment(1);
        self.notifications.increment(notifications as u64);
    }
}

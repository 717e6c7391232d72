//! What is done in a second and within minutes, and how long what waits takes at that.
//!
//! It deliberately knows no process: it is told counters.

use std::time::Duration;

use runtime::connections::{Counters, LATELY};

/// What is done in a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Rates {
    pub(crate) pushes_accepted: f64,
    pub(crate) pushes_sent: f64,
    pub(crate) pushes_failed: f64,
    pub(crate) pushes_retried: f64,
    pub(crate) events_accepted: f64,
    pub(crate) notifications_delivered: f64,
    pub(crate) notifications_failed: f64,
    pub(crate) notifications_retried: f64,
    pub(crate) webpush_direct: f64,
    pub(crate) webpush_stored: f64,
    pub(crate) webpush_errors: f64,
    pub(crate) webpush_opened: f64,
}

impl Rates {
    #[expect(
        clippy::cast_precision_loss,
        reason = "nothing is done so often within seconds"
    )]
    pub(super) fn between(before: &Counters, after: &Counters, seconds: f64) -> Self {
        let rate = |count: fn(&Counters) -> u64| count(after).saturating_sub(count(before)) as f64 / seconds;
        Self {
            pushes_accepted: rate(|c| c.pushes_accepted),
            pushes_sent: rate(|c| c.pushes_sent),
            pushes_failed: rate(|c| c.pushes_failed),
            pushes_retried: rate(|c| c.pushes_retried),
            events_accepted: rate(|c| c.events_accepted),
            notifications_delivered: rate(|c| c.notifications_delivered),
            notifications_failed: rate(|c| c.notifications_failed),
            notifications_retried: rate(|c| c.notifications_retried),
            webpush_direct: rate(|c| c.webpush_direct),
            webpush_stored: rate(|c| c.webpush_stored),
            webpush_errors: rate(|c| c.webpush_errors),
            webpush_opened: rate(|c| c.webpush_opened),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.pushes_accepted += other.pushes_accepted;
        self.pushes_sent += other.pushes_sent;
        self.pushes_failed += other.pushes_failed;
        self.pushes_retried += other.pushes_retried;
        self.events_accepted += other.events_accepted;
        self.notifications_delivered += other.notifications_delivered;
        self.notifications_failed += other.notifications_failed;
        self.notifications_retried += other.notifications_retried;
        self.webpush_direct += other.webpush_direct;
        self.webpush_stored += other.webpush_stored;
        self.webpush_errors += other.webpush_errors;
        self.webpush_opened += other.webpush_opened;
    }
}

/// What all processes together have done within the last minutes, or since they were started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Lately {
    /// How far back the oldest report looks.
    pub(crate) span: Duration,
    pub(crate) pushes_claimed: u64,
    pub(crate) push_attempts: u64,
    pub(crate) swrve_errors: u64,
    pub(crate) notifications_claimed: u64,
    pub(crate) ingest_requests: u64,
    pub(crate) ingest_errors: u64,
    pub(crate) webpush_accepted: u64,
    pub(crate) webpush_errors: u64,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nothing is done so often within minutes"
)]
impl Lately {
    /// Whether `count` is more than `per_second` over all of the last minutes, however long ago the processes were started.
    pub(crate) fn exceeds(&self, count: u64, per_second: f64) -> bool {
        count as f64 > per_second * LATELY.as_secs_f64()
    }

    /// Which part of `all` is `count`; none of nothing.
    pub(crate) fn share(&self, count: u64, all: u64) -> f64 {
        count as f64 / all.max(1) as f64
    }
}

/// How long `waiting` take at a rate; `None` when nothing waits, or hardly anything is done.
pub(crate) fn time_to_send(waiting: u64, per_second: f64) -> Option<Duration> {
    #[expect(clippy::cast_precision_loss, reason = "a time to the second needs no more")]
    let seconds = waiting as f64 / per_second;
    let known = waiting > 0 && per_second >= 0.1;
    // In whole seconds, the last one begun.
    known
        .then(|| Duration::try_from_secs_f64(seconds.ceil()).ok())
        .flatten()
}

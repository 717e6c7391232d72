//! From where on something is out of order. `deploy/prometheus/alerts.yml` has the same numbers where it looks at the same things: a test
//! compares the two, and finds a warning at least for whatever the rules page for.
//!
//! Durations that are the same for the one who looks at `status` and for an alert stand here once. An alert also has to last for a while, and
//! `status` tells at once, so that it never says less. What only one finding of `status` goes by, and no alert, stands beside that finding in
//! `evaluate`.

use std::time::Duration;

pub(crate) use runtime::connections::LATELY;

/// How long what is due may wait for room in the queue, or for being put there. Jobs look every few seconds at most.
pub(crate) const OVERDUE: Duration = Duration::from_secs(2 * 60);
/// From here on pushes are late although the lane does all it can.
pub(crate) const PUSHES_LATE: Duration = Duration::from_secs(5 * 60);
/// From here on notifications are late although all of them are of one subscription.
pub(crate) const NOTIFICATIONS_LATE: Duration = Duration::from_secs(10 * 60);
/// How long a lease may have run out: rescuers look every few seconds.
pub(crate) const LOST: Duration = Duration::from_secs(2 * 60);

/// The part of the attempts of [`LATELY`] from which on Swrve counts as failing although it accepts some.
pub(crate) const SWRVE_FAILING_SHARE: f64 = 0.5;
/// Attempts in a second below which such a part says nothing.
pub(crate) const SWRVE_ATTEMPTS_PER_SECOND: f64 = 0.05;
/// For how long Swrve may accept nothing of what it was asked before it matters however few pushes that was.
pub(crate) const SWRVE_FAILING: Duration = Duration::from_secs(30);

/// The part of the pushes and events handed in lately that may be answered with 5xx, and how many of them in a second.
pub(crate) const INGEST_ERROR_SHARE: f64 = 0.05;
pub(crate) const INGEST_ERRORS_PER_SECOND: f64 = 0.1;

/// How many subscriptions that fail at once, and which part of those that are served, page. `status` warns of fewer.
#[cfg(test)]
pub(crate) const FAILING_WIDELY: (u64, f64) = (5, 0.3);
/// Subscriptions in trouble at once, and their part of those that are served, from which on the cause is likely ours.
pub(crate) const MANY_SUBSCRIPTIONS: u64 = 3;
pub(crate) const LARGE_SHARE: f64 = 0.2;

/// Months for which there have to be partitions beyond the present one.
pub(crate) const MONTHS_AHEAD: i32 = 1;

/// The part of the messages of Web Push that may lately have been refused because they could not be stored, and how many in a second.
pub(crate) const WEBPUSH_ERROR_SHARE: f64 = 0.05;
pub(crate) const WEBPUSH_ERRORS_PER_SECOND: f64 = 0.1;
/// Stored messages of Web Push from which on they are many: as many as the store is measured with.
pub(crate) const WEBPUSH_MANY: u64 = 10_000_000;
/// Stored messages in the month that goes next from which on they are many: they go with it, and so do their user agents.
pub(crate) const WEBPUSH_OLD: u64 = 100_000;

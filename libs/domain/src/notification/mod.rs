//! The reseller lane: what a notification is, how it is tried, and what its endpoint's answers mean.

mod body_class;
mod id;
mod outage;
mod outcome;
mod retry;

use std::time::Duration;

pub use id::NotificationId;
pub use outage::{OUTAGE_WINDOW, Observation, OutageChange, OutageClass, OutageDecision, OutageWatch, Tried};
pub use outcome::{Classification, ClientErrors, DeliveryOutcome, ERROR_TYPES, FailureKind, HealthSignal};
pub use retry::{RetryAfter, RetryPlan, RetryPolicy};

/// How long a queued notification is left in peace at least before it is taken for lost. Queues of the default capacity are short:
/// the engine that reads them puts what it has no room for back into the database. One that is taken for lost too early is sent once all
/// the same, since a claim asks the row.
pub const QUEUE_LEASE: Duration = Duration::from_secs(60);
/// The longest that one message of a full queue takes to be read; engines read ten times as fast when they are well.
const READING: Duration = Duration::from_millis(6);

/// How long a notification in a queue of this capacity is left in peace: the time that a full one takes to drain. Otherwise all of a
/// long queue would be rescued and promoted a second time beside its messages, each minute, until it held nothing but repetitions.
pub fn queue_lease(capacity: u32) -> Duration {
    READING.saturating_mul(capacity).max(QUEUE_LEASE)
}

/// Both lanes have one life cycle.
pub use crate::lifecycle::{State as NotificationState, Status as NotificationStatus};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_queue_is_left_in_peace_for_longer() {
        assert_eq!(queue_lease(2), QUEUE_LEASE);
        assert_eq!(queue_lease(10_000), QUEUE_LEASE);
        assert_eq!(queue_lease(1_000_000), Duration::from_secs(6_000));
    }
}

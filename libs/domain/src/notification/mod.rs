//! The reseller lane: what a notification is, the states it goes through and the rules that move it.

mod body_class;
mod id;
mod outcome;
mod retry;
mod state;

use std::time::Duration;

pub use id::NotificationId;
pub use outcome::{DeliveryOutcome, FailureKind, HealthSignal, Verdict};
pub use retry::{RetryAfter, RetryPolicy};
pub use state::{Attempts, Event, NotificationState, Refused, transition};

/// How long a queued notification is left in peace before it is taken for lost. Queues are short: whoever reads them
/// puts what it has no room for back into the database. One that is taken for lost too early is sent once all the same,
/// since a claim asks the row.
pub const QUEUE_LEASE: Duration = Duration::from_secs(60);

/// Why something is `GIVEN_UP` that an operator has cancelled, of either lane.
pub use crate::push::CANCELLED;
/// The statuses of a notification are those of a push: both lanes have one life cycle.
pub use crate::push::PushStatus as NotificationStatus;

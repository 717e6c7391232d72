//! The reseller lane: what a notification is, the states it goes through and the rules that move it.

mod id;
mod outcome;
mod retry;
mod state;

pub use id::NotificationId;
pub use outcome::{DeliveryOutcome, FailureKind, HealthSignal, Verdict};
pub use retry::{RetryAfter, RetryPolicy};
pub use state::{Attempts, Event, NotificationState, Refused, transition};

/// The statuses of a notification are those of a push: both lanes have one life cycle.
pub use crate::push::PushStatus as NotificationStatus;

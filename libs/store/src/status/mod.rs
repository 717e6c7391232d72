//! How the system is, for the engineer on call: what waits in each lane, and how the rest of the tables stand.
//!
//! Every question is answered from the heads of indexes, and whatever is counted is counted up to a bound, so that asking
//! stays cheap with any backlog. It deliberately judges nothing.

mod answers;
mod lanes;
mod last_look;
mod paused;
mod quotas;
mod rest;
mod waits;

pub use answers::SwrveFailure;
pub use lanes::{Depths, Overdue, Waiting};
pub use last_look::{LOOKS_APART_MAX, LastLook};
pub use paused::{PAUSED_COUNTED_MAX, PausedWaiting};
pub use quotas::{QUOTA_COUNTED_MAX, QuotaWaiting};
pub use rest::{
    Deactivated, Deaths, JobInProgress, Leadership, MailsInTrouble, SubscriptionCount, SubscriptionInTrouble,
};
pub use waits::{WAITS_COUNTED_MAX, Waits};

/// Up to how many rows are counted. A count above it means "more than that".
pub const COUNTED_MAX: u64 = 100_000;

/// One more than [`COUNTED_MAX`], as a `LIMIT` takes it.
fn counted() -> i64 {
    i64::try_from(COUNTED_MAX + 1).unwrap_or(i64::MAX)
}

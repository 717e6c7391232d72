//! The service over HTTP, in process, on a database and queues of each test's own.

#![allow(
    clippy::unwrap_used,
    reason = "what the tests are built of fails like the tests themselves"
)]

mod accepting;
mod documents;
mod events;
mod group_commit;
mod idempotency;
mod limits;
mod looking_up;
mod metrics;
mod outages;
mod queue;
mod refusing;
mod running;
mod shutdown;

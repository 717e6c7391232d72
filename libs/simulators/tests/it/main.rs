//! The simulators over real connections.

#![allow(
    clippy::unwrap_used,
    reason = "what the tests are built of fails like the tests themselves"
)]

mod receiver;
mod smtp;
mod swrve;

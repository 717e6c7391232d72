//! The crate over real sockets and the real clock.

#![allow(
    clippy::unwrap_used,
    reason = "what the tests are built of fails like the tests themselves"
)]

mod pacer;
mod receiver;
mod simulator;
mod swrve;
mod unreachable;
mod webhook;

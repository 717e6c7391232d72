//! The dispatcher in process, against a real database, a real broker and a scripted Swrve.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod answers;
mod apart;
mod holds;
mod lease;
mod outages;
mod pauses;
mod pool;
mod prototypes;
mod redelivery;
mod replays;
mod retries;
mod rig;
mod settings;
mod standby;
mod stopping;
mod unreachable;
mod windows;

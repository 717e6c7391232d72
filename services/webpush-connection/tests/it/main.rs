//! Nodes in process, on a database of each test's own, with real web sockets.

#![allow(
    clippy::unwrap_used,
    reason = "what the tests are built of fails like the tests themselves"
)]

mod abuse;
mod broadcasts;
mod client;
mod direct;
mod health;
mod identity;
mod killed;
mod nodes;
mod program;
mod rig;
mod rotation;
mod stored;

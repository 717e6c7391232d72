//! The service over HTTP, in process, on a database of each test's own, with scripted connection nodes.

#![allow(
    clippy::unwrap_used,
    reason = "what the tests are built of fails like the tests themselves"
)]

mod checks;
mod delivery;
mod documented;
mod node;
mod program;
mod protocol;
mod registrations;
mod rotation;
mod scene;
mod sender;

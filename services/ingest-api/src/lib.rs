//! The service that takes pushes and events in: `POST /push`, `POST /events` and `POST /events/batch` authenticate,
//! validate, store and answer; publishing to the queue follows. `GET /push/{id}` and `GET /events/{id}` tell what has
//! become of them, and `/event-types` is the catalogue that events are checked against.
//!
//! The folders: `push` and `event` hold what is served about either; `lane` is the way that both take from the request
//! to the group commit and from there to the queue. From the commit on everything is safe: an answer 202 never depends on
//! the broker.
//!
//! What it deliberately does not do: send anything to Swrve or to resellers, promote what waits, or rescue what was lost.
//! It serves no metrics either; those are on the process's own listener (`telemetry::admin`).

mod app;
mod error;
mod event;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod lane;
mod metrics;
mod openapi;
mod problems;
mod push;
mod request;
mod router;
mod service;
mod share;

pub use error::Error;
pub use openapi::document as openapi;
pub use service::{run, run_with_clock};

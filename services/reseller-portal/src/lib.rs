//! The service that resellers talk to: their subscriptions, secrets, quotas, notifications, replays and numbers.
//!
//! Every route takes the reseller from the API key and from nowhere else; what belongs to another one does not exist.
//! Keys of the house are of no use here: this is the service that strangers can reach.
//!
//! What it deliberately does not do: deliver anything. It changes rows; the dispatcher and the retry worker find them. It
//! has no broker, and its answers never hold a secret, save the one that made it.

mod app;
mod event_types;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod limits;
mod metrics;
mod notifications;
mod openapi;
mod problems;
mod quotas;
mod replays;
mod request;
mod router;
mod secrets;
mod sending_ips;
mod service;
mod site;
mod subscriptions;

pub use openapi::document as openapi;
pub use runtime::connections::OpenError as Error;
pub use service::{run, run_with_clock};

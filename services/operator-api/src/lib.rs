//! The service for the people who look after an installation: what is out of order, why, and what mends it.
//!
//! Everything that is seen here is of the house, and so are the keys: viewers look, operators and administrators also act.
//! Every act is recorded with who did it, in the transaction that does it.
//!
//! What it deliberately does not do: deliver anything, or keep a state of its own. It changes rows; the dispatcher and the
//! retry worker find them. It talks to the broker only about queues, never about what is in them.

mod answers;
mod app;
mod audit;
mod cancel;
mod cancellations;
mod console;
mod dead_letter_jobs;
mod dead_letters;
mod event_types;
mod events;
mod examined;
mod explain;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod history;
mod keys;
mod mails;
mod note;
mod notifications;
mod openapi;
mod pauses;
mod portal_links;
mod pushes;
mod quota_requests;
mod request;
mod resolve;
mod restore;
mod retry_now;
mod router;
mod search;
mod service;
mod status;
mod subscriptions;
mod user_agents;
mod visits;
mod waiting;

pub use openapi::document as openapi;
pub use runtime::connections::OpenError as Error;
pub use service::{run, run_with_clock};

//! The service for the people who look after an installation: what is out of order, why, and what mends it.
//!
//! Everything that is seen here is of the house, and so are the keys: viewers look, operators and administrators also act.
//! Every act is recorded with who did it, in the transaction that does it.
//!
//! What it deliberately does not do: deliver anything, or keep a state of its own. It changes rows; the dispatcher and the
//! retry worker find them. It talks to the broker only about queues, never about what is in them.

mod app;
mod audit;
mod cancel;
mod dead_letter_jobs;
mod dead_letters;
mod error;
mod explain;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod note;
mod openapi;
mod pauses;
mod quota_requests;
mod request;
mod resolve;
mod restore;
mod router;
mod service;
mod status;

use std::sync::Arc;

use config::Config;
use lifecycle::Lifecycle;
use tokio::net::TcpListener;

pub use error::Error;
pub use openapi::document as openapi;
pub use service::Service;

/// Serves `listener` until the shutdown of `lifecycle`; then finishes what is under way, within the grace period.
///
/// The database and the broker may be away at the start and go away later.
pub async fn run(config: Arc<Config>, listener: TcpListener, lifecycle: Lifecycle) -> Result<(), Error> {
    Service::new(config, listener, lifecycle).run().await
}

//! The service that takes pushes in: `POST /push` authenticates, validates, stores and answers; publishing to the queue
//! follows. `GET /push/{id}` tells what has become of a push.
//!
//! The way of a push: `submit` checks it, `intake` queues it, a `writer` stores it together with whatever else has
//! arrived and answers, `outbox` publishes it. From the commit on the push is safe: an answer 202 never depends on the
//! broker. The `gate` spares the broker what it would refuse.
//!
//! What it deliberately does not do: send anything to Swrve, promote what waits, or rescue what was lost. It serves no
//! metrics either; those are on the process's own listener (`telemetry::admin`).

mod app;
mod auth;
mod body;
mod docs_page;
mod drain;
mod error;
mod explanation;
mod gate;
mod intake;
mod lookup;
mod meters;
mod openapi;
mod outage;
mod outbox;
mod payload;
mod pipeline;
mod problem;
mod router;
mod server;
mod service;
mod submit;
mod watch;
mod writer;

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
///
/// # Errors
///
/// [`Error`] when the service cannot start, or a part that it cannot do without has ended.
pub async fn run(config: Arc<Config>, listener: TcpListener, lifecycle: Lifecycle) -> Result<(), Error> {
    Service::new(config, listener, lifecycle).run().await
}

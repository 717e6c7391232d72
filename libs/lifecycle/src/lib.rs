//! How a process starts, reports that it is ready, and stops: signals, readiness, tracked tasks and the bounded drain.
//!
//! It deliberately knows nothing of what the services do, serves no HTTP (see `telemetry::admin`) and never exits the process:
//! leaving `main` is the binary's job, once the drain is over.

pub mod crypto;
mod error_chain;
mod readiness;
mod shutdown;
mod tasks;

pub use error_chain::error_chain;
pub use readiness::{Condition, Readiness, Report};
pub use shutdown::Shutdown;
pub use tasks::{Drained, TaskGroup};

/// What every service is handed at its start: when to stop, and where to say that it can work.
#[derive(Clone, Debug, Default)]
pub struct Lifecycle {
    /// Becomes cancelled when the service has to stop.
    pub shutdown: Shutdown,
    /// The conditions that `/readyz` reports.
    pub readiness: Readiness,
}

//! Why a process could not start or had to end.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::ServiceError;

/// Why a process could not start or had to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is not usable; nothing was started.
    #[error(transparent)]
    Configuration(#[from] config::Errors),
    /// The log filter of the configuration is not valid; nothing was started.
    #[error("telemetry.logFilter is not usable")]
    LogFilter(#[source] telemetry::Error),
    /// Logs, metrics or traces cannot be set up.
    #[error("failed to set up telemetry")]
    Telemetry(#[source] telemetry::Error),
    /// The operating system gives no threads.
    #[error("failed to start the runtime")]
    Runtime(#[source] io::Error),
    /// The signal handlers cannot be registered.
    #[error("failed to register the signal handlers")]
    Signals(#[source] io::Error),
    /// Another program listens there.
    #[error(
        "failed to listen on {address} ({key}): the address is in use; stop the process that uses it, or choose another \
         address with {variable}"
    )]
    AddressInUse {
        /// The address.
        address: SocketAddr,
        /// The key of the configuration that says so.
        key: &'static str,
        /// The environment variable of that key.
        variable: String,
    },
    /// The address cannot be listened on for another reason.
    #[error("failed to listen on {address} ({key})")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The key of the configuration that says so.
        key: &'static str,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// The endpoints for operators failed.
    #[error("failed to serve the admin endpoints")]
    Admin(#[source] io::Error),
    /// A service failed; the others were stopped.
    #[error("{service} failed")]
    Service {
        /// Its name.
        service: &'static str,
        /// Why.
        #[source]
        source: ServiceError,
    },
    /// A service ended without being asked to; the others were stopped.
    #[error("{service} ended without being asked to")]
    EndedEarly {
        /// Its name.
        service: &'static str,
    },
    /// A service panicked, which its thread has reported; the others were stopped.
    #[error("{service} panicked")]
    Panicked {
        /// Its name.
        service: &'static str,
    },
    /// Services were still busy long after the grace period.
    #[error("{services} did not stop within {limit:?}")]
    Overdue {
        /// Their names.
        services: String,
        /// How long they had.
        limit: Duration,
    },
}

impl Error {
    /// Whether the configuration has to be mended first.
    pub fn is_configuration(&self) -> bool {
        matches!(self, Self::Configuration(_) | Self::LogFilter(_))
    }
}

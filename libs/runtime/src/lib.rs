//! What every process does around its services: configuration, runtime, telemetry, listeners, signals, the bounded end, and the
//! connections to database and broker ([`connections`]).
//!
//! A service's own binary calls [`main`]; `postrider serve` and `postrider up` call [`run`]: all of them behave alike. It
//! deliberately knows no service by name, so that every service can depend on it.
//!
//! ```no_run
//! # async fn serve(_: std::sync::Arc<config::Config>, _: lifecycle::Lifecycle) -> Result<(), std::io::Error> { Ok(()) }
//! fn main() -> std::process::ExitCode {
//!     runtime::main(runtime::Service::new("dispatcher", serve))
//! }
//! ```

pub mod connections;
mod descriptors;
mod error;
mod process;
mod program;
mod report;
mod service;

pub use descriptors::descriptor_shortage;
pub use error::Error;
pub use lifecycle::error_chain;
pub use process::Process;
pub use program::{BAD_CONFIGURATION, EXIT_CODES, exit, main, run};
pub use service::{Service, ServiceError};

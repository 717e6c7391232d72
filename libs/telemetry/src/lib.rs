//! What a process shows of itself: metrics, logs, traces, and the small HTTP server that hands them out.
//!
//! It deliberately knows neither the configuration file (a service translates its section into [`Settings`]) nor what any number
//! means for the service; it only owns their names.

pub mod admin;
mod catalogue;
mod definition;
mod error;
mod logs;
mod metric;
mod otlp;
pub mod pace;
mod process;
mod readings;
mod recorder;
mod setup;
pub mod traceparent;
pub mod traces;

pub use catalogue::Metric;
pub use definition::{Definition, Kind, reference};
pub use error::Error;
pub use readings::Readings;
pub use recorder::{describe_all, render_metrics};
pub use setup::{Guard, LogFormat, Settings, init};

//! A stand-in for the Swrve push API, for development, tests and measurements: it answers in Swrve's format after
//! realistic times, limits the rate as Swrve does, fails on demand, and reports exactly what arrived and when.
//!
//! It sends nothing to anybody, keeps nothing on disk, authenticates no caller, and is no model of Swrve beyond the one
//! call that Postrider makes. See `docs/swrve-simulator.md`.

mod arrival;
mod connection;
mod distinct;
mod http_api;
mod options;
mod pace;
mod received;
mod recorder;
mod report;
mod response_time;
mod script;
mod server;

pub use crate::received::Outcome;
pub use crate::script::{Pattern, RuleError, ScriptError};
pub use options::Options;
pub use received::{Received, ReceivedPage};
pub use report::Report;
pub use response_time::{ResponseTime, ResponseTimeSyntax};
pub use script::{Match, Rule, parse_script};
pub use server::{Running, SimError, SwrveSim};

//! A receiver of webhooks, for development, tests and measurements: it checks signatures, answers verification challenges,
//! fails on demand, and reports exactly what arrived, when, and what it thought of it.
//!
//! It sends nothing to anybody, keeps nothing on disk, and is no example of a receiver that should run anywhere else: every
//! caller that reaches it can tell it how to behave. See `docs/receiver.md`.

mod answer;
mod arrival;
mod body;
mod connection;
mod control;
mod endpoint;
mod ids;
mod keyring;
mod notification;
mod options;
mod received;
mod recorder;
mod report;
mod script;
mod server;
mod tls;

pub use crate::received::Outcome;
pub use crate::script::{Pattern, RuleError, RuleInForce, ScriptError};
pub use keyring::{KeyringError, SecretFor, SecretText, Verdict};
pub use options::Options;
pub use received::{Received, ReceivedPage};
pub use report::{Delay, Report};
pub use script::{Match, Rule, parse_script};
pub use server::{Receiver, ReceiverError, Running};
pub use tls::{TlsError, load as load_tls};

//! A mail server for development and tests: it takes every mail, writes each as one `.eml` file, and fails on demand.
//!
//! It delivers nothing to anybody, encrypts nothing, lets everybody in, and knows of SMTP (RFC 5321) only what it
//! takes to receive. What a mail says is none of its business: the files hold the bytes that came.

mod dialogue;
mod lines;
mod report;
mod script;
mod server;
mod spool;

pub use report::{Received, Report};
pub use script::{Action, Rule, Stage};
pub use server::{Running, SinkError, SmtpSink};

//! What has arrived, as it is told.

use std::path::PathBuf;

use serde::Serialize;

/// Counts since the start, and the latest mails.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Connections that were accepted.
    pub connections: u64,
    /// Mails that were kept.
    pub kept: u64,
    /// Commands and mails that were answered with a code from 400 on.
    pub refused: u64,
    /// The latest mails that were kept, the oldest first.
    pub mails: Vec<Received>,
}

/// A mail that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Received {
    /// The address of `MAIL FROM`; empty for a bounce.
    pub sender: String,
    /// The addresses of `RCPT TO`.
    pub recipients: Vec<String>,
    /// Size of the content.
    pub bytes: usize,
    /// Where it is.
    pub file: PathBuf,
}

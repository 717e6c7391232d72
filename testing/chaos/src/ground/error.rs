//! Why something could not be done to the ground.

use std::io;
use std::path::PathBuf;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program or library of the system is missing.
    #[error("{what} is not installed: {mend}")]
    Missing {
        /// What was looked for.
        what: &'static str,
        /// What to do about it.
        mend: &'static str,
    },
    /// The layout cannot be had.
    #[error("a broker has 1 or 3 nodes, not {nodes}")]
    Nodes {
        /// How many were asked for.
        nodes: usize,
    },
    /// A file could not be made, read or written.
    #[error("failed to use {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No address could be had.
    #[error("failed to listen on {address}")]
    Listen {
        /// Where.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A command could not be run.
    #[error("failed to run {command}")]
    Run {
        /// Which.
        command: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A command failed.
    #[error("{command} failed with {status}: {output}")]
    Failed {
        /// Which.
        command: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The end of what it said.
        output: String,
    },
    /// What a command printed was not understood.
    #[error("{command} printed what is not understood: {output}")]
    Unexpected {
        /// Which.
        command: String,
        /// What it printed.
        output: String,
    },
    /// Something did not become so in time.
    #[error("waited {seconds} s in vain for {what}")]
    TooLate {
        /// For what.
        what: String,
        /// How long.
        seconds: u64,
    },
    /// A process did not end in good order.
    #[error("{process} did not end in good order: {how}")]
    Unclean {
        /// Which.
        process: String,
        /// How it ended.
        how: String,
    },
}

impl Error {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

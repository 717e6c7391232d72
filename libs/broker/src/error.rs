//! The error type of the crate, and its one-line description for the connection state.

use std::error::Error as _;
use std::time::Duration;

/// Why something asked of the broker could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL is unusable. The URL itself is not repeated, because it carries the password.
    #[error("invalid AMQP URL: {reason}")]
    InvalidUrl {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// TCP, TLS or the AMQP handshake failed; wrong credentials and unknown virtual hosts are among the
    /// causes.
    #[error("failed to connect to the broker at {address}")]
    Connect {
        /// `host:port`.
        address: String,
        /// The AMQP client's error.
        #[source]
        source: lapin::Error,
    },
    /// TCP, TLS and the AMQP handshake together took too long.
    #[error("no AMQP connection to {address} within {limit:?}")]
    ConnectTimeout {
        /// `host:port`.
        address: String,
        /// The time allowed.
        limit: Duration,
    },
    /// The server refused a request, or the connection broke during it.
    #[error("failed to {operation}")]
    Request {
        /// What was asked for.
        operation: &'static str,
        /// The AMQP client's error.
        #[source]
        source: lapin::Error,
    },
    /// The server left a request unanswered.
    #[error("no answer within {limit:?} to the request to {operation}")]
    RequestTimeout {
        /// What was asked for.
        operation: &'static str,
        /// The time allowed.
        limit: Duration,
    },
    /// The queue exists with other arguments, and cannot be replaced while it is being consumed.
    #[error("queue {queue} exists with other arguments and is in use by {consumers} consumer(s)")]
    QueueInUse {
        /// Full name of the queue.
        queue: String,
        /// How many consumers it has.
        consumers: u32,
    },
    /// The queue asked about does not exist.
    #[error("queue {queue} does not exist")]
    QueueMissing {
        /// Full name of the queue.
        queue: String,
    },
    /// There is no connection at the moment.
    #[error("not connected to the broker")]
    NotConnected,
}

impl Error {
    /// The error and its causes in one line.
    ///
    /// The AMQP client repeats causes in its own text, so a cause that has been said already is skipped.
    pub(crate) fn describe(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let said = error.to_string();
            if !text.contains(&said) {
                text = format!("{text}: {said}");
            }
            cause = error.source();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_names_every_cause_once() {
        let io = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "refused");
        let error = Error::Connect {
            address: "localhost:1".to_owned(),
            source: io.into(),
        };
        assert_eq!(
            error.describe(),
            "failed to connect to the broker at localhost:1: IO error: refused"
        );
    }
}

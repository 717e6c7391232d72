//! Why the service cannot run.

use runtime::connections::OpenError;

/// Why the service cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A connection cannot be prepared.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There are no keys of endpoints.
    #[error("webpush.keys {0}")]
    Keys(#[source] webpush::KeyError),
    /// The client of connection nodes cannot be made.
    #[error("the HTTP client of connection nodes cannot be made")]
    Client(#[source] reqwest::Error),
}

//! Why a body cannot be read.

use super::{MAX_BYTES, VERSION};

/// Why a body is not an [`Envelope`](super::Envelope).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// Longer than [`MAX_BYTES`].
    #[error("message body of {bytes} bytes is longer than {MAX_BYTES}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Not JSON, or a field is missing or of the wrong type.
    #[error("malformed message body")]
    Malformed {
        /// The parser's explanation.
        #[source]
        source: serde_json::Error,
    },
    /// Written by a sender of another version.
    #[error("unsupported message version {found}, expected {VERSION}")]
    UnsupportedVersion {
        /// The version it says.
        found: u64,
    },
    /// About something that this version does not know.
    #[error("unknown message kind {found:?}")]
    UnknownKind {
        /// The kind it says.
        found: String,
    },
    /// The id names nothing.
    #[error("message id is the nil UUID")]
    NilId,
}

//! Checking a notification and reading it, in this order.

use std::time::Duration;

use crate::headers::SignedHeaders;
use crate::notification::{BodyError, Notification};
use crate::secret::Secret;
use crate::verify::{VerifyError, accept};

/// Why a request is not taken for a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// It is not to be believed.
    #[error(transparent)]
    Signature(#[from] VerifyError),
    /// The sender signed something else than a notification.
    #[error(transparent)]
    Body(#[from] BodyError),
}

impl ReceiveError {
    /// The `result` of `sdks/vectors.json`: the same word in every language.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Signature(error) => error.code(),
            Self::Body(_) => "bad_body",
        }
    }
}

/// Accepts what [`verify`](crate::verify) accepts, and reads it.
///
/// # Errors
///
/// [`ReceiveError::Signature`] as `verify` has it; only a body whose signature is right is looked into, which can lead to
/// [`ReceiveError::Body`].
///
/// ```
/// use signing::{DEFAULT_TOLERANCE, Secret, SignedHeaders, receive, sign};
///
/// let secret = Secret::generate();
/// let body = br#"{"id":"msg_1","type":"domain.created","timestamp":"2025-07-20T08:26:40.000Z","data":{"domain":"example.org"}}"#;
/// let signature = sign(&secret, "msg_1", 1_753_000_000, body);
/// let headers = SignedHeaders { id: Some("msg_1"), timestamp: Some("1753000000"), signature: Some(&signature) };
/// let notification = receive(&[&secret], headers, body, 1_753_000_002, DEFAULT_TOLERANCE)?;
/// assert_eq!(notification.event_type, "domain.created");
/// assert_eq!(notification.data["domain"], "example.org");
/// # Ok::<(), signing::ReceiveError>(())
/// ```
pub fn receive(
    secrets: &[&Secret],
    headers: SignedHeaders<'_>,
    body: &[u8],
    now: i64,
    tolerance: Duration,
) -> Result<Notification, ReceiveError> {
    let accepted = accept(secrets, headers, body, now, tolerance)?;
    Ok(Notification::read(accepted.id, accepted.signed_at, body)?)
}

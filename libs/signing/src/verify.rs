//! Checking signatures.

use std::time::Duration;

use crate::content::{COMMA, Code, VERSION};
use crate::headers::{HEADER_ID, HEADER_SIGNATURE, HEADER_TIMESTAMP, SignedHeaders};
use crate::secret::Secret;

/// How far a timestamp may be away from now when the caller has no reason for another limit: what other implementations use as well.
pub const DEFAULT_TOLERANCE: Duration = Duration::from_secs(300);

/// Why a message is not to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// A header is missing or empty.
    #[error("the header {0} is missing")]
    MissingHeader(&'static str),
    /// A full stop in it would make it ambiguous what was signed.
    #[error("the header {HEADER_ID} holds a full stop")]
    AmbiguousId,
    /// It is not a whole number of seconds since 1970, written as such a number is written.
    #[error("the header {HEADER_TIMESTAMP} is not a number of seconds")]
    BadTimestamp,
    /// It was signed before the tolerance began: it may be a recorded message that was sent again.
    #[error("the message was signed too long ago")]
    TooOld,
    /// It was signed after the tolerance ends: one of both clocks is wrong.
    #[error("the message was signed in the future")]
    TooNew,
    /// No signature was made with one of the secrets for exactly these bytes.
    #[error("no signature matches")]
    NoMatch,
}

impl VerifyError {
    /// The `result` of `sdks/vectors.json`: the same word in every language.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MissingHeader(_) => "missing_header",
            Self::AmbiguousId => "ambiguous_id",
            Self::BadTimestamp => "bad_timestamp",
            Self::TooOld => "too_old",
            Self::TooNew => "too_new",
            Self::NoMatch => "no_match",
        }
    }
}

/// What is known of a message that was accepted.
pub(crate) struct Accepted<'a> {
    pub(crate) id: &'a str,
    /// Seconds since 1970.
    pub(crate) signed_at: i64,
}

/// Accepts a message that was signed with one of `secrets` within `tolerance` of `now` (seconds since 1970).
///
/// `body` must be the bytes as they arrived: JSON that was parsed and written again is another message.
///
/// Signatures of versions other than `v1` are passed over. Comparing takes the same time wherever two signatures differ.
///
/// # Errors
///
/// See [`VerifyError`]; the timestamp is judged before the signature.
///
/// ```
/// use signing::{DEFAULT_TOLERANCE, Secret, SignedHeaders, sign, verify};
///
/// let (secret, body) = (Secret::generate(), br#"{"id":"msg_1"}"#);
/// let signature = sign(&secret, "msg_1", 1_614_265_330, body);
/// let headers = SignedHeaders { id: Some("msg_1"), timestamp: Some("1614265330"), signature: Some(&signature) };
/// verify(&[&secret], headers, body, 1_614_265_335, DEFAULT_TOLERANCE)?;
/// # Ok::<(), signing::VerifyError>(())
/// ```
pub fn verify(
    secrets: &[&Secret],
    headers: SignedHeaders<'_>,
    body: &[u8],
    now: i64,
    tolerance: Duration,
) -> Result<(), VerifyError> {
    accept(secrets, headers, body, now, tolerance).map(|_| ())
}

/// What [`verify`] does, with what it has learned on the way.
pub(crate) fn accept<'a>(
    secrets: &[&Secret],
    headers: SignedHeaders<'a>,
    body: &[u8],
    now: i64,
    tolerance: Duration,
) -> Result<Accepted<'a>, VerifyError> {
    let id = present(headers.id, HEADER_ID)?;
    let timestamp = present(headers.timestamp, HEADER_TIMESTAMP)?;
    let signatures = present(headers.signature, HEADER_SIGNATURE)?;
    if id.contains('.') {
        return Err(VerifyError::AmbiguousId);
    }
    let signed_at = seconds(timestamp)?;
    check_time(signed_at, now, tolerance)?;
    let candidates: Vec<Code> = signatures.split(' ').filter_map(code_of).collect();
    let matches = secrets.iter().any(|secret| {
        let expected = Code::of(secret, id, timestamp, body);
        candidates.contains(&expected)
    });
    if matches {
        Ok(Accepted { id, signed_at })
    } else {
        Err(VerifyError::NoMatch)
    }
}

fn present<'a>(value: Option<&'a str>, name: &'static str) -> Result<&'a str, VerifyError> {
    value
        .filter(|value| !value.is_empty())
        .ok_or(VerifyError::MissingHeader(name))
}

/// Takes only the one way to write a number, since the text is what was signed.
fn seconds(text: &str) -> Result<i64, VerifyError> {
    let is_canonical =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if !is_canonical {
        return Err(VerifyError::BadTimestamp);
    }
    text.parse().map_err(|_| VerifyError::BadTimestamp)
}

/// Both ends of the tolerance belong to it.
fn check_time(signed_at: i64, now: i64, tolerance: Duration) -> Result<(), VerifyError> {
    let tolerance = i64::try_from(tolerance.as_secs()).unwrap_or(i64::MAX);
    if signed_at < now.saturating_sub(tolerance) {
        Err(VerifyError::TooOld)
    } else if signed_at > now.saturating_add(tolerance) {
        Err(VerifyError::TooNew)
    } else {
        Ok(())
    }
}

fn code_of(signature: &str) -> Option<Code> {
    match signature.split_once(COMMA) {
        Some((VERSION, code)) => Code::read(code),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

//! The header by which a caller says that two requests are the same one.
//!
//! It deliberately remembers nothing: what a key stands for is in the database.

use http::{HeaderMap, HeaderName};

use crate::kind::ProblemKind;
use crate::problem::Problem;

/// The request header with a caller's own key.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The response header of an answer that was given before.
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Longest key, in characters.
const MAX: usize = 255;

/// The request's key, if it has one.
///
/// # Errors
///
/// A [`ProblemKind::INVALID_HEADER`] for a key that is given twice or is not 1 to 255 visible ASCII characters.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let invalid = |detail| Problem::new(ProblemKind::INVALID_HEADER, detail);
    if values.next().is_some() {
        return Err(invalid("the Idempotency-Key header is given more than once"));
    }
    value
        .to_str()
        .ok()
        .filter(|key| (1..=MAX).contains(&key.len()))
        .filter(|key| key.bytes().all(|byte| byte.is_ascii_graphic()))
        .map(Some)
        .ok_or_else(|| invalid("the Idempotency-Key header must be 1 to 255 visible ASCII characters"))
}

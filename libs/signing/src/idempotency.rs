//! The key by which a receiver recognises a body that it has had before.

use sha2::{Digest as _, Sha256};

/// The value of the header `Idempotency-Key`: SHA-256 over the exact bytes of the body, in hexadecimal.
///
/// The body holds the identifier of its event, so two events never share a key, and every attempt for one event has the same.
///
/// ```
/// assert!(signing::idempotency_key(br#"{"id":"1"}"#).starts_with("5811967f"));
/// ```
pub fn idempotency_key(body: &[u8]) -> String {
    hex::encode(Sha256::digest(body))
}

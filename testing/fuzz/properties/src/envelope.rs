//! The body of a message: what is read is written again as it was read, and a body is refused as what it is: too long, of
//! another version, of an unknown kind, or none of ours.

use broker::Envelope;
use broker::envelope::{EnvelopeError, MAX_BYTES, VERSION};
use serde_json::Value;

/// Checks the property.
pub fn check(body: &[u8]) {
    let said = serde_json::from_slice::<Value>(body).ok();
    match Envelope::decode(body) {
        Ok(envelope) => {
            assert!(body.len() <= MAX_BYTES && envelope.version == VERSION && !envelope.id.is_nil());
            let written = envelope.encode();
            assert!(written.len() <= 400, "thin messages: {} bytes", written.len());
            assert_eq!(
                Envelope::decode(&written).expect("what we write we read"),
                envelope
            );
            if let Some(said) = said {
                assert_eq!(said["version"], VERSION);
                assert_eq!(said["kind"], envelope.kind.as_str());
            }
        }
        Err(EnvelopeError::TooLong { bytes }) => assert!(bytes == body.len() && bytes > MAX_BYTES),
        Err(EnvelopeError::UnsupportedVersion { found }) => {
            assert!(found != u64::from(VERSION));
            assert!(said.is_none_or(|said| said["version"] == found));
        }
        Err(error @ (EnvelopeError::UnknownKind { .. } | EnvelopeError::NilId)) => {
            assert!(said.is_none_or(|said| said["version"] == VERSION), "{error}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

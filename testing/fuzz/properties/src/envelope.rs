//! The body of a message: what is read is written again as it was read, and a body is refused as what it is: too long, of
//! another version, of an unknown kind, or none of ours.

use broker::Envelope;
use broker::envelope::{EnvelopeError, MAX_BYTES, VERSION};
use serde_json::Value;

/// Checks the property.
pub fn check(body: &[u8]) {
    let said = serde_json::from_slice::<Value>(body).ok();
    match Envelope::decode(body) {
        Ok(envelopes) => {
            assert!(body.len() <= MAX_BYTES && !envelopes.is_empty());
            for envelope in &envelopes {
                assert!(envelope.version == VERSION && !envelope.id.is_nil());
                let written = envelope.encode();
                assert!(written.len() <= 400, "thin messages: {} bytes", written.len());
                assert_eq!(
                    Envelope::decode(&written).expect("what we write we read"),
                    std::slice::from_ref(envelope)
                );
            }
            if let Some(said) = said {
                assert_eq!(said["version"], VERSION);
                assert_eq!(said["kind"], envelopes[0].kind.as_str());
                let more = said["more"].as_array().map_or(0, Vec::len);
                assert_eq!(envelopes.len(), 1 + more);
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

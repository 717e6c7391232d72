//! Base64 as senders and clients write it: of either alphabet, padded or not.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_encode_padding(false)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);

/// Without padding, in the alphabet of URLs.
pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE.encode(bytes)
}

/// Of the alphabet of URLs.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE.decode(text.trim_end_matches('=')).ok()
}

/// Of either alphabet: some senders write their key in the one of MIME.
pub(crate) fn decode_any(text: &str) -> Option<Vec<u8>> {
    if text.contains(['+', '/']) {
        STANDARD.decode(text.trim_end_matches('=')).ok()
    } else {
        decode(text)
    }
}

//! What is signed: `{id}.{timestamp}.{body}`, keyed with one secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::digest::CtOutput;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::secret::Secret;

/// The version of symmetric signatures, as it stands before each of them.
pub(crate) const VERSION: &str = "v1";
/// Between a version and its signature.
pub(crate) const COMMA: char = ',';
/// Bytes of a signature.
const LENGTH: usize = 32;

type HmacSha256 = Hmac<Sha256>;

/// A signature before it is written down. Comparing two takes the same time wherever they differ.
pub(crate) struct Code(CtOutput<HmacSha256>);

impl Code {
    /// The code of these parts. The timestamp is text, so that a receiver checks the very characters that arrived.
    pub(crate) fn of(secret: &Secret, id: &str, timestamp: &str, body: &[u8]) -> Self {
        let mut mac = HmacSha256::new_from_slice(secret.expose_bytes())
            .expect("invariant: HMAC takes keys of every length");
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        Self(mac.finalize())
    }

    /// A code as the sender wrote it; `None` when no code can be written like this.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut bytes = [0; LENGTH + 1];
        // One byte of room more than is wanted, so that a longer text is seen to be longer.
        let length = STANDARD.decode_slice(text, &mut bytes).ok()?;
        let code: [u8; LENGTH] = bytes.get(..length)?.try_into().ok()?;
        Some(Self(CtOutput::new(code.into())))
    }

    /// Appends it to `text` with its version.
    pub(crate) fn write_to(self, text: &mut String) {
        text.push_str(VERSION);
        text.push(COMMA);
        STANDARD.encode_string(self.0.into_bytes(), text);
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

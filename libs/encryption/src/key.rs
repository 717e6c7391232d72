//! Sealing keys: 32 random bytes, and the short name by which a sealed value tells which of them it needs.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use zeroize::Zeroizing;

/// Bytes of a key of AES-256.
const KEY_BYTES: usize = 32;
/// Bytes of a key's name.
pub(crate) const ID_BYTES: usize = 4;

/// A key that seals. Its memory is overwritten when it is dropped; it never shows itself.
#[derive(Clone)]
pub struct SealingKey(Zeroizing<[u8; KEY_BYTES]>);

/// Why a text is no sealing key. Repeats nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not standard base64 with padding.
    #[error("a sealing key is written in base64 (standard alphabet, with padding)")]
    Base64,
    /// Another number of bytes.
    #[error("a sealing key has {KEY_BYTES} bytes, this one has {0}")]
    Length(usize),
}

impl SealingKey {
    /// Takes the bytes themselves.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads a key as the configuration has it: the base64 of 32 bytes, such as `openssl rand -base64 32` makes.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let bytes = Zeroizing::new(STANDARD.decode(text.trim()).map_err(|_| KeyError::Base64)?);
        let bytes = bytes
            .as_slice()
            .try_into()
            .map_err(|_| KeyError::Length(bytes.len()))?;
        Ok(Self::from_bytes(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// The beginning of its digest, which tells keys apart and gives nothing away that helps to find one.
    pub(crate) fn id(&self) -> [u8; ID_BYTES] {
        let digest = digest(&SHA256, self.0.as_slice());
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&digest.as_ref()[..ID_BYTES]);
        id
    }
}

impl FromStr for SealingKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_base64() {
        let text = STANDARD.encode([7; 32]);
        assert_eq!(
            SealingKey::parse(&format!(" {text}\n")).unwrap().bytes(),
            &[7; 32]
        );
        for (text, wanted) in [
            (text.replace('=', ""), KeyError::Base64),
            ("not base64!".to_owned(), KeyError::Base64),
            (String::new(), KeyError::Length(0)),
            (STANDARD.encode([7; 31]), KeyError::Length(31)),
            (STANDARD.encode([7; 33]), KeyError::Length(33)),
        ] {
            assert_eq!(text.parse::<SealingKey>().unwrap_err(), wanted, "{text}");
        }
    }

    #[test]
    fn a_key_shows_nothing_of_itself() {
        assert_eq!(
            format!("{:?}", SealingKey::from_bytes([7; 32])),
            "SealingKey(hidden)"
        );
    }

    #[test]
    fn a_key_is_named_by_the_beginning_of_its_digest() {
        // printf 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' | sha256sum
        assert_eq!(SealingKey::from_bytes([b'A'; 32]).id(), [0x22, 0xa4, 0x80, 0x51]);
    }
}

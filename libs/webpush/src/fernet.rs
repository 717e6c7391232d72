//! Fernet, <https://github.com/fernet/spec>: AES-128-CBC, then HMAC-SHA256. The first key encrypts, each one decrypts, so that keys can be
//! replaced without losing what the ones before have encrypted.

use aes::Aes128;
use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockDecryptMut as _, BlockEncryptMut as _, KeyIvInit as _};
use chrono::{DateTime, Utc};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::base64url;

const VERSION: u8 = 0x80;
/// Of a key: half of it signs, half of it encrypts.
const HALF: usize = 16;
const BLOCK: usize = 16;
/// Version, time and initialisation vector.
const HEAD: usize = 1 + 8 + BLOCK;
const TAG: usize = 32;
/// Longer than any token made here, so that a caller cannot have megabytes decrypted.
const TOKEN_MAX: usize = 1024;

/// Why a list of keys cannot be read. Repeats nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no key in it.
    #[error("has no key; write one or several as [key,key]: the first encrypts, all of them decrypt")]
    Empty,
    /// One of them is not a key.
    #[error("key {place} is not 32 bytes in base64, as `openssl rand -base64 32 | tr '+/' '-_'` prints")]
    Malformed {
        /// Which, counted from 1.
        place: usize,
    },
}

/// The keys of endpoints and message ids. Connection nodes and endpoint nodes must have the same.
#[derive(Clone)]
pub struct Keys(Vec<Key>);

#[derive(Clone)]
struct Key {
    signing: hmac::Key,
    encryption: [u8; HALF],
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Keys").field(&self.0.len()).finish()
    }
}

impl Keys {
    /// Reads keys: `[key,key]`, also with quotes and spaces; or a single one without brackets.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let keys = list(text).enumerate().map(|(place, key)| {
            let malformed = KeyError::Malformed { place: place + 1 };
            let bytes = base64url::decode_any(key).ok_or(malformed)?;
            let (signing, encryption) = bytes.split_first_chunk::<HALF>().ok_or(malformed)?;
            Ok(Key {
                signing: hmac::Key::new(hmac::HMAC_SHA256, signing),
                encryption: encryption.try_into().map_err(|_| malformed)?,
            })
        });
        let keys: Vec<Key> = keys.collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(KeyError::Empty);
        }
        Ok(Self(keys))
    }

    /// Encrypts with the first key. The same twice looks different. Without the padding of base64, so that it fits into a path.
    pub fn seal(&self, plain: &[u8], at: DateTime<Utc>) -> String {
        let mut vector = [0; BLOCK];
        SystemRandom::new()
            .fill(&mut vector)
            .expect("invariant: the operating system has randomness once it has started");
        self.seal_with(plain, at, vector)
    }

    fn seal_with(&self, plain: &[u8], at: DateTime<Utc>, vector: [u8; BLOCK]) -> String {
        let Some(key) = self.0.first() else {
            return String::new();
        };
        let mut token = Vec::with_capacity(HEAD + plain.len() + BLOCK + TAG);
        token.push(VERSION);
        token.extend_from_slice(&at.timestamp().to_be_bytes());
        token.extend_from_slice(&vector);
        let cipher = cbc::Encryptor::<Aes128>::new(&key.encryption.into(), &vector.into());
        token.extend_from_slice(&cipher.encrypt_padded_vec_mut::<Pkcs7>(plain));
        let tag = hmac::sign(&key.signing, &token);
        token.extend_from_slice(tag.as_ref());
        base64url::encode(&token)
    }

    /// Decrypts what one of the keys has encrypted, at any time.
    pub fn open(&self, token: &str) -> Option<Vec<u8>> {
        if token.len() > TOKEN_MAX {
            return None;
        }
        let token = base64url::decode(token)?;
        let (signed, tag) = token.split_at_checked(token.len().checked_sub(TAG)?)?;
        let (head, body) = signed.split_at_checked(HEAD)?;
        if head.first() != Some(&VERSION) || body.is_empty() || body.len() % BLOCK != 0 {
            return None;
        }
        let vector: [u8; BLOCK] = head.get(HEAD - BLOCK..)?.try_into().ok()?;
        let key = self
            .0
            .iter()
            .find(|key| hmac::verify(&key.signing, signed, tag).is_ok())?;
        let cipher = cbc::Decryptor::<Aes128>::new(&key.encryption.into(), &vector.into());
        cipher.decrypt_padded_vec_mut::<Pkcs7>(body).ok()
    }
}

/// The items of a list that is written as the reference takes it: `[a,b]`, with or without quotes, spaces and brackets.
pub(crate) fn list(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim();
    let text = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    text.split(',')
        .map(|item| item.trim_matches([' ', '"', '\'']))
        .filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of the specification.
    const KEY: &str = "cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4=";
    const TOKEN: &str =
        "gAAAAAAdwJ6wAAECAwQFBgcICQoLDA0ODy021cpGVWKZ_eEwCGM4BLLF_5CV9dOPmrhuVUPgJobwOz7JcbmrR64jVmpU4IwqDA";

    fn at() -> DateTime<Utc> {
        DateTime::from_timestamp(499_162_800, 0).unwrap()
    }

    fn keys(bytes: &[[u8; 32]]) -> Keys {
        let keys: Vec<_> = bytes.iter().map(|key| base64url::encode(key)).collect();
        Keys::parse(&format!("[{}]", keys.join(","))).unwrap()
    }

    #[test]
    fn the_vectors_of_the_specification_hold() {
        let keys = Keys::parse(KEY).unwrap();
        let vector = std::array::from_fn(|n| u8::try_from(n).unwrap());
        assert_eq!(keys.seal_with(b"hello", at(), vector), TOKEN);
        assert_eq!(keys.open(TOKEN).as_deref(), Some(b"hello".as_slice()));
        assert_eq!(
            keys.open(&format!("{TOKEN}==")).as_deref(),
            Some(b"hello".as_slice())
        );
    }

    #[test]
    fn lists_are_read_as_operators_write_them() {
        let other = base64url::encode(&[7; 32]);
        for text in [
            KEY.to_owned(),
            format!("[{KEY}]"),
            format!("[\"{KEY}\", \"{other}\"]"),
            format!(" [{KEY},{other}] "),
        ] {
            assert!(Keys::parse(&text).unwrap().open(TOKEN).is_some(), "{text}");
        }
        assert_eq!(Keys::parse("[]").unwrap_err(), KeyError::Empty);
        assert_eq!(Keys::parse("").unwrap_err(), KeyError::Empty);
        for (text, place) in [
            ("secret".to_owned(), 1),
            (format!("[{KEY},c2hvcnQ=]"), 2),
            (format!("[{KEY}AAAA]"), 1),
        ] {
            let error = Keys::parse(&text).unwrap_err();
            assert_eq!(error, KeyError::Malformed { place }, "{text}");
            assert!(!error.to_string().contains("secret"), "a key is not repeated");
        }
    }

    #[test]
    fn debug_shows_no_key() {
        assert_eq!(format!("{:?}", keys(&[[1; 32], [2; 32]])), "Keys(2)");
    }

    #[test]
    fn keys_are_replaced_in_two_steps_and_nothing_is_lost() {
        let (old, new) = ([1; 32], [2; 32]);
        let sealed_before = keys(&[old]).seal(b"subscription", at());
        // First the new key is made known everywhere, behind the old one: nothing uses it yet.
        let both = keys(&[old, new]);
        assert!(both.open(&sealed_before).is_some());
        assert!(keys(&[old]).open(&both.seal(b"a", at())).is_some());
        // Then it goes first. A node that still has the order of before opens what it encrypts.
        let turned = keys(&[new, old]);
        let sealed_after = turned.seal(b"subscription", at());
        for keys in [&both, &turned] {
            assert!(keys.open(&sealed_before).is_some());
            assert!(keys.open(&sealed_after).is_some());
        }
        assert!(
            keys(&[new]).open(&sealed_before).is_none(),
            "the old one is gone for good"
        );
    }

    #[test]
    fn what_is_much_too_long_is_not_looked_at() {
        let keys = keys(&[[1; 32]]);
        assert!(keys.open(&keys.seal(&[0; 512], at())).is_some());
        assert!(keys.open(&keys.seal(&[0; 1024], at())).is_none());
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_opened_with_its_key_alone(plain in prop::collection::vec(any::<u8>(), 0..200), one: [u8; 32], two: [u8; 32]) {
            prop_assume!(one[..16] != two[..16]);
            let sealed = keys(&[one]).seal(&plain, at());
            prop_assert_eq!(keys(&[two, one]).open(&sealed), Some(plain));
            prop_assert_eq!(keys(&[two]).open(&sealed), None);
        }

        #[test]
        fn what_was_changed_is_not_opened(plain in prop::collection::vec(any::<u8>(), 0..64), bit in any::<prop::sample::Index>()) {
            let keys = keys(&[[3; 32]]);
            let mut bytes = base64url::decode(&keys.seal(&plain, at())).unwrap();
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(keys.open(&base64url::encode(&bytes)), None);
        }

        #[test]
        fn anything_may_be_asked(text in ".{0,300}") {
            prop_assert_eq!(keys(&[[3; 32]]).open(&text), None);
        }
    }
}

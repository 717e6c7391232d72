//! Sealing and opening: AES-256-GCM with a random nonce.
//!
//! A sealed value is `version (1) | key id (4) | nonce (12) | ciphertext | tag (16)`. The version, the key's id and the context
//! are authenticated with it.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::key::{ID_BYTES, SealingKey};

/// The one layout there is so far.
const VERSION: u8 = 1;
const HEAD: usize = 1 + ID_BYTES;
const CONTEXT_BYTES: usize = 16;
/// How much longer a sealed value is than what was sealed.
pub const OVERHEAD: usize = HEAD + NONCE_LEN + 16;

/// Why something cannot be sealed or opened. Repeats nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The operating system gave no randomness, or the value is too large for the cipher.
    #[error("the value cannot be sealed")]
    Seal,
    /// It is too short, or of a layout that this version does not know.
    #[error("this is not a sealed value")]
    Malformed,
    /// It was sealed with a key that is neither the current one nor among the previous ones.
    #[error("it was sealed with a key that is not configured (key {})", key_name(.0))]
    UnknownKey([u8; ID_BYTES]),
    /// It was changed, or belongs to another context.
    #[error("the sealed value was changed or belongs elsewhere")]
    Refused,
}

fn key_name(id: &[u8; ID_BYTES]) -> String {
    format!("{:08x}", u32::from_be_bytes(*id))
}

/// Seals with the current key and opens with each that is known. Cheap to use from many tasks at once.
#[derive(Debug)]
pub struct Sealer {
    current: Opener,
    previous: Vec<Opener>,
    random: SystemRandom,
}

#[derive(Debug)]
struct Opener {
    id: [u8; ID_BYTES],
    key: LessSafeKey,
}

impl Sealer {
    /// Seals with `current`, and opens what was sealed with it or with one of `previous`.
    pub fn new(current: &SealingKey, previous: &[SealingKey]) -> Self {
        Self {
            current: Opener::new(current),
            previous: previous.iter().map(Opener::new).collect(),
            random: SystemRandom::new(),
        }
    }

    /// Seals `plain` for `context`, the row that it belongs to: elsewhere it cannot be opened. The same value sealed twice looks
    /// different.
    pub fn seal(&self, context: Uuid, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| SealError::Seal)?;
        let head = self.current.head();
        // Encrypted in place, and with room for all of it from the start, so that no copy of the plain value is left behind.
        let mut sealed = Vec::with_capacity(plain.len() + OVERHEAD);
        sealed.extend_from_slice(&head);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let tag = self
            .current
            .key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                authenticated(&head, context),
                &mut sealed[HEAD + NONCE_LEN..],
            )
            .map_err(|_| SealError::Seal)?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// Opens what was sealed for `context`.
    pub fn open(&self, context: Uuid, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let (head, rest) = sealed.split_first_chunk::<HEAD>().ok_or(SealError::Malformed)?;
        let (nonce, encrypted) = rest
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(SealError::Malformed)?;
        let [VERSION, id @ ..] = *head else {
            return Err(SealError::Malformed);
        };
        // Ids are short enough for two keys to share one by accident: each key of that name is tried.
        let mut outcome = Err(SealError::UnknownKey(id));
        for opener in self.openers().filter(|opener| opener.id == id) {
            let mut buffer = Zeroizing::new(encrypted.to_vec());
            let opened = opener.key.open_in_place(
                Nonce::assume_unique_for_key(*nonce),
                authenticated(head, context),
                &mut buffer,
            );
            match opened.map(|plain| plain.len()) {
                Ok(length) => {
                    buffer.truncate(length);
                    return Ok(buffer);
                }
                Err(_) => outcome = Err(SealError::Refused),
            }
        }
        outcome
    }

    /// What every value begins with that was sealed with the current key. Any other should be sealed again.
    pub fn mark(&self) -> [u8; HEAD] {
        self.current.head()
    }

    fn openers(&self) -> impl Iterator<Item = &Opener> {
        std::iter::once(&self.current).chain(&self.previous)
    }
}

impl Opener {
    fn new(key: &SealingKey) -> Self {
        let unbound = UnboundKey::new(&AES_256_GCM, key.bytes())
            .expect("invariant: a sealing key has as many bytes as the cipher wants");
        Self {
            id: key.id(),
            key: LessSafeKey::new(unbound),
        }
    }

    fn head(&self) -> [u8; HEAD] {
        let mut head = [VERSION; HEAD];
        head[1..].copy_from_slice(&self.id);
        head
    }
}

fn authenticated(head: &[u8; HEAD], context: Uuid) -> Aad<[u8; HEAD + CONTEXT_BYTES]> {
    let mut bytes = [0; HEAD + CONTEXT_BYTES];
    bytes[..HEAD].copy_from_slice(head);
    bytes[HEAD..].copy_from_slice(context.as_bytes());
    Aad::from(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROW: Uuid = Uuid::from_u128(1);

    fn key(byte: u8) -> SealingKey {
        SealingKey::from_bytes([byte; 32])
    }

    #[test]
    fn the_same_value_sealed_twice_looks_different() {
        let sealer = Sealer::new(&key(1), &[]);
        let (first, second) = (
            sealer.seal(ROW, b"secret").unwrap(),
            sealer.seal(ROW, b"secret").unwrap(),
        );
        assert_ne!(first, second);
        assert_ne!(first[HEAD..HEAD + NONCE_LEN], second[HEAD..HEAD + NONCE_LEN]);
        assert_eq!(sealer.open(ROW, &first), sealer.open(ROW, &second));
    }

    #[test]
    fn another_row_cannot_use_it() {
        let sealer = Sealer::new(&key(1), &[]);
        let sealed = sealer.seal(ROW, b"secret").unwrap();
        assert_eq!(sealer.open(Uuid::from_u128(2), &sealed), Err(SealError::Refused));
    }

    #[test]
    fn keys_can_be_replaced_and_retired() {
        let before = Sealer::new(&key(1), &[]);
        let sealed = before.seal(ROW, b"secret").unwrap();
        let after = Sealer::new(&key(2), &[key(1)]);
        assert_eq!(after.open(ROW, &sealed).unwrap().as_slice(), b"secret");
        assert!(!sealed.starts_with(&after.mark()) && sealed.starts_with(&before.mark()));
        let renewed = after.seal(ROW, b"secret").unwrap();
        assert!(renewed.starts_with(&after.mark()));
        assert_eq!(
            before.open(ROW, &renewed),
            Err(SealError::UnknownKey(key(2).id()))
        );
        let retired = Sealer::new(&key(2), &[]);
        assert_eq!(
            retired.open(ROW, &sealed),
            Err(SealError::UnknownKey(key(1).id()))
        );
        assert_eq!(retired.open(ROW, &renewed).unwrap().as_slice(), b"secret");
    }

    #[test]
    fn a_key_of_the_same_name_that_does_not_fit_is_passed_over() {
        let mut sealer = Sealer::new(&key(2), &[key(1)]);
        sealer.current.id = key(1).id();
        let sealed = Sealer::new(&key(1), &[]).seal(ROW, b"secret").unwrap();
        assert_eq!(sealer.open(ROW, &sealed).unwrap().as_slice(), b"secret");
    }

    #[test]
    fn what_was_never_sealed_is_malformed() {
        let sealer = Sealer::new(&key(1), &[]);
        let sealed = sealer.seal(ROW, b"").unwrap();
        assert_eq!(sealed.len(), OVERHEAD);
        for length in 0..HEAD + NONCE_LEN {
            assert_eq!(sealer.open(ROW, &sealed[..length]), Err(SealError::Malformed));
        }
        let mut later_layout = sealed;
        later_layout[0] = 2;
        assert_eq!(sealer.open(ROW, &later_layout), Err(SealError::Malformed));
        assert!(!later_layout.starts_with(&sealer.mark()));
    }

    #[test]
    fn nothing_shows_a_key_or_a_value() {
        let sealer = Sealer::new(&key(0x5a), &[]);
        let sealed = sealer.seal(ROW, b"plain text").unwrap();
        assert!(!sealed.windows(5).any(|window| window == b"plain"));
        let shown = format!("{sealer:?} {}", SealError::UnknownKey(key(1).id()));
        assert!(!shown.contains("90, 90") && !shown.contains("5a5a"), "{shown}");
    }

    proptest! {
        #[test]
        fn every_value_is_opened_as_it_was(plain in prop::collection::vec(any::<u8>(), 0..200), row in any::<u128>()) {
            let (sealer, row) = (Sealer::new(&key(1), &[]), Uuid::from_u128(row));
            let sealed = sealer.seal(row, &plain).unwrap();
            prop_assert_eq!(sealed.len(), plain.len() + OVERHEAD);
            let opened = sealer.open(row, &sealed).unwrap();
            prop_assert_eq!(opened.as_slice(), plain.as_slice());
        }

        #[test]
        fn one_changed_bit_anywhere_is_refused(at in any::<prop::sample::Index>(), bit in 0..8u8) {
            let sealer = Sealer::new(&key(1), &[key(2)]);
            let mut sealed = sealer.seal(ROW, b"some secret").unwrap();
            let at = at.index(sealed.len());
            sealed[at] ^= 1 << bit;
            prop_assert!(sealer.open(ROW, &sealed).is_err());
        }

        #[test]
        fn what_was_cut_off_or_added_is_refused(cut in 0usize..50, added in prop::collection::vec(any::<u8>(), 1..50)) {
            let sealer = Sealer::new(&key(1), &[]);
            let sealed = sealer.seal(ROW, b"some secret").unwrap();
            let cut = cut.min(sealed.len() - 1);
            prop_assert!(sealer.open(ROW, &sealed[..cut]).is_err());
            prop_assert!(sealer.open(ROW, &[sealed, added].concat()).is_err());
        }
    }
}

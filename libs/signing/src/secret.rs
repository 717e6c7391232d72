//! Signing secrets: `whsec_` and the base64 of 24 to 64 bytes.
//!
//! A secret can be shown only by asking for it by name. There is no `Display`, so that no format string and no `to_string` can
//! leak one, and no `PartialEq`, which would invite comparisons whose time tells how much of a guess was right.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// What every secret begins with, so that secret scanners find one that leaked.
pub const SECRET_PREFIX: &str = "whsec_";
/// The fewest bytes of a secret: 192 bits, as the specification wants it.
pub const MIN_SECRET_BYTES: usize = 24;
/// The most bytes of a secret: 512 bits, the block of the hash. HMAC would shorten a longer one.
pub const MAX_SECRET_BYTES: usize = 64;
/// As many bytes as the hash has: more would not make a signature any harder to forge.
const GENERATED_BYTES: usize = 32;

/// A symmetric signing secret. Its memory is overwritten when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

/// Why a text is no signing secret. Says what is wrong without repeating any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// It begins otherwise.
    #[error("a signing secret begins with {SECRET_PREFIX}")]
    Prefix,
    /// What follows the prefix is not standard base64 with padding.
    #[error("what follows {SECRET_PREFIX} is not base64 (standard alphabet, with padding)")]
    Base64,
    /// Guessing it would be too easy.
    #[error("a signing secret has at least {MIN_SECRET_BYTES} bytes, this one has {0}")]
    TooShort(usize),
    /// HMAC would shorten it.
    #[error("a signing secret has at most {MAX_SECRET_BYTES} bytes, this one has {0}")]
    TooLong(usize),
}

impl SecretError {
    /// The `error` of `sdks/vectors.json`: the same word in every language.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Prefix => "prefix",
            Self::Base64 => "base64",
            Self::TooShort(_) => "too_short",
            Self::TooLong(_) => "too_long",
        }
    }
}

impl Secret {
    /// A new secret of 32 random bytes.
    ///
    /// # Panics
    ///
    /// When the operating system has no randomness to give, which must never end in a secret that can be guessed.
    pub fn generate() -> Self {
        let mut bytes = Zeroizing::new(vec![0; GENERATED_BYTES]);
        getrandom::fill(&mut bytes).expect("invariant: the operating system gives random bytes");
        Self(bytes)
    }

    /// Reads a secret as [`Self::reveal`] writes it; blanks around it are not part of it.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let encoded = text
            .trim()
            .strip_prefix(SECRET_PREFIX)
            .ok_or(SecretError::Prefix)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretError::Base64)?;
        Self::from_bytes(Zeroizing::new(bytes))
    }

    /// Takes the bytes themselves, as they come from a store.
    pub fn from_bytes(bytes: Zeroizing<Vec<u8>>) -> Result<Self, SecretError> {
        match bytes.len() {
            length if length < MIN_SECRET_BYTES => Err(SecretError::TooShort(length)),
            length if length > MAX_SECRET_BYTES => Err(SecretError::TooLong(length)),
            _ => Ok(Self(bytes)),
        }
    }

    /// The secret as text, to be shown to its owner once.
    pub fn reveal(&self) -> Zeroizing<String> {
        let capacity = SECRET_PREFIX.len() + self.0.len().div_ceil(3) * 4;
        // Room for all of it from the start: a text that grows leaves copies behind that are never overwritten.
        let mut text = Zeroizing::new(String::with_capacity(capacity));
        text.push_str(SECRET_PREFIX);
        STANDARD.encode_string(self.0.as_slice(), &mut text);
        text
    }

    /// The bytes that key the HMAC, to be sealed and stored.
    pub fn expose_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of_bytes(length: usize) -> String {
        format!("{SECRET_PREFIX}{}", STANDARD.encode(vec![7; length]))
    }

    #[test]
    fn what_is_wrong_with_a_text_is_said() {
        for (text, wanted) in [
            (String::new(), SecretError::Prefix),
            (of_bytes(32).replace("whsec_", "whsk_"), SecretError::Prefix),
            (of_bytes(32).replace("whsec_", "WHSEC_"), SecretError::Prefix),
            (STANDARD.encode([7; 32]), SecretError::Prefix),
            ("whsec_".to_owned(), SecretError::TooShort(0)),
            (of_bytes(23), SecretError::TooShort(23)),
            (of_bytes(65), SecretError::TooLong(65)),
            (of_bytes(32).replace('=', ""), SecretError::Base64),
            (of_bytes(32).replacen('B', "-", 1), SecretError::Base64),
            (of_bytes(32).replacen('B', " ", 1), SecretError::Base64),
            // The last character carries bits that stand for nothing: two texts would be one secret.
            (of_bytes(32).replace("c=", "d="), SecretError::Base64),
        ] {
            assert_eq!(Secret::parse(&text).unwrap_err(), wanted, "{text}");
        }
    }

    #[test]
    fn both_limits_and_blanks_around_are_taken() {
        for text in [
            of_bytes(24),
            of_bytes(64),
            format!(" {}\n", of_bytes(32)),
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned(),
        ] {
            let secret: Secret = text.parse().unwrap();
            assert_eq!(secret.reveal().as_str(), text.trim());
        }
    }

    #[test]
    fn generated_secrets_differ_and_can_be_read_back() {
        let (first, second) = (Secret::generate(), Secret::generate());
        assert_eq!(first.expose_bytes().len(), GENERATED_BYTES);
        assert_ne!(first.expose_bytes(), second.expose_bytes());
        let again = Secret::parse(&first.reveal()).unwrap();
        assert_eq!(again.expose_bytes(), first.expose_bytes());
    }

    #[test]
    fn debug_and_errors_show_nothing_of_a_secret() {
        let secret = Secret::parse(&of_bytes(32)).unwrap();
        assert_eq!(
            format!("{secret:?} {:#?}", Some(&secret)).matches("Bwc").count(),
            0
        );
        let error = Secret::parse("whsec_Bwc!").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("Bwc"), "{error}");
    }

    proptest! {
        #[test]
        fn every_length_allowed_survives_being_written_and_read(bytes in prop::collection::vec(any::<u8>(), 24..=64)) {
            let secret = Secret::from_bytes(Zeroizing::new(bytes.clone())).unwrap();
            let text = secret.reveal();
            prop_assert!(text.starts_with(SECRET_PREFIX));
            let again = Secret::parse(&text).unwrap();
            prop_assert_eq!(again.expose_bytes(), bytes.as_slice());
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".*", tail in "[A-Za-z0-9+/=_-]{0,120}") {
            let _ = Secret::parse(&text);
            let _ = Secret::parse(&format!("{SECRET_PREFIX}{tail}"));
        }
    }
}

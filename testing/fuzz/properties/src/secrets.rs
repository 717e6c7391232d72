//! Signing secrets, sealing keys and sealed values: what is read can be written and read again, an error repeats nothing,
//! and a sealed value opens as what it was, where it belongs, or not at all.

use encryption::{KeyError, Sealer, SealingKey};
use signing::{Secret, SecretError};
use uuid::Uuid;

/// Checks the property.
pub fn check(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input) {
        signing_secret(text);
        signing_secret(&format!("whsec_{text}"));
        sealing_key(text);
    }
    sealed(input);
}

fn signing_secret(text: &str) {
    match Secret::parse(text) {
        Ok(secret) => {
            assert!((24..=64).contains(&secret.expose_bytes().len()));
            assert_eq!(secret.reveal().as_str(), text.trim(), "one secret, one text");
            assert!(!format!("{secret:?}").contains(&text.trim()[6..]));
        }
        // All that an error holds is a number.
        Err(SecretError::TooShort(bytes)) => assert!(bytes < 24),
        Err(SecretError::TooLong(bytes)) => assert!(bytes > 64),
        Err(SecretError::Prefix) => assert!(!text.trim().starts_with("whsec_")),
        Err(SecretError::Base64) => assert!(text.trim().starts_with("whsec_")),
    }
}

fn sealing_key(text: &str) {
    match SealingKey::parse(text) {
        Ok(key) => assert!(!format!("{key:?}").contains(text.trim())),
        Err(KeyError::Length(bytes)) => assert_ne!(bytes, 32),
        Err(KeyError::Base64) => {}
    }
}

fn sealed(input: &[u8]) {
    let (current, previous) = (SealingKey::from_bytes([1; 32]), SealingKey::from_bytes([2; 32]));
    let sealer = Sealer::new(&current, std::slice::from_ref(&previous));
    let (row, elsewhere) = (Uuid::from_u128(1), Uuid::from_u128(2));
    assert!(sealer.open(row, input).is_err(), "it was never sealed");
    let sealed = Sealer::new(&previous, &[])
        .seal(row, input)
        .expect("small values can be sealed");
    assert_eq!(sealer.open(row, &sealed).expect("a known key").as_slice(), input);
    assert!(sealer.open(elsewhere, &sealed).is_err() && !sealed.starts_with(&sealer.mark()));
    // Any change is found out: here one that the input itself chooses.
    let mut changed = sealed;
    let place = input.iter().fold(0, |sum, byte| sum + usize::from(*byte)) % changed.len();
    changed[place] ^= input.first().copied().unwrap_or(1) | 1;
    assert!(sealer.open(row, &changed).is_err());
}

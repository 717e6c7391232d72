//! The cases that `sdks/vectors.json` is made of. Everything is fixed: every run makes the same file.
//!
//! What each case should lead to is written here by hand. The signatures are not; that they are right is what the public vector
//! and the independent implementation show.

use crate::vector::{SecretVector, SignVector};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

pub(crate) const PUBLIC_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub(crate) const NOW: i64 = 1_753_000_000;
pub(crate) const BODY: &str = r#"{"id":"evt_1","type":"domain.created","timestamp":"2025-07-20T08:26:40.000Z","data":{"domain":"example.org"}}"#;

/// A secret of this many bytes, the same every time.
pub(crate) fn secret(name: &str, bytes: usize) -> String {
    let digests = (0..2).flat_map(|part| Sha256::digest(format!("{name} {part}")));
    format!(
        "whsec_{}",
        STANDARD.encode(digests.take(bytes).collect::<Vec<_>>())
    )
}

pub(crate) fn secrets() -> Vec<SecretVector> {
    let encoded = secret("plain", 32).replace("whsec_", "");
    [
        ("the public one", PUBLIC_SECRET.to_owned(), None),
        ("the shortest", secret("short", 24), None),
        ("the usual length", secret("plain", 32), None),
        ("the longest", secret("long", 64), None),
        ("empty", String::new(), Some("prefix")),
        ("without a prefix", encoded.clone(), Some("prefix")),
        ("another prefix", format!("whpk_{encoded}"), Some("prefix")),
        ("nothing but the prefix", "whsec_".to_owned(), Some("too_short")),
        ("one byte too short", secret("short", 23), Some("too_short")),
        (
            "one byte too long",
            format!("whsec_{}", STANDARD.encode([7; 65])),
            Some("too_long"),
        ),
        (
            "without padding",
            format!("whsec_{}", encoded.trim_end_matches('=')),
            Some("base64"),
        ),
        // Lenient decoders take two texts for one secret.
        (
            "bits behind the last byte",
            format!("whsec_{}", encoded.replace("U=", "V=")),
            Some("base64"),
        ),
        (
            "the alphabet of URLs",
            format!(
                "whsec_{}",
                STANDARD.encode([0xfb; 24]).replace('+', "-").replace('/', "_")
            ),
            Some("base64"),
        ),
        (
            "a blank inside",
            format!("whsec_{} {}", &encoded[..8], &encoded[8..]),
            Some("base64"),
        ),
    ]
    .into_iter()
    .map(|(name, text, wanted)| {
        let vector = SecretVector::of(name, &text);
        assert_eq!(vector.error.as_deref(), wanted, "{name}");
        vector
    })
    .collect()
}

pub(crate) fn sign() -> Vec<SignVector> {
    let (a, b, c) = (secret("a", 32), secret("b", 32), secret("c", 48));
    let (short, long) = (secret("short", 24), secret("long", 64));
    let every_byte: Vec<u8> = (0..=255).collect();
    let large = format!(
        r#"{{"id":"evt_large","data":"{}"}}"#,
        "0123456789abcdef".repeat(512)
    );
    vec![
        SignVector::of(
            "the public vector of Standard Webhooks",
            &[PUBLIC_SECRET],
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        ),
        SignVector::of("an event", &[&a], "evt_1", NOW, BODY.as_bytes()),
        SignVector::of("the shortest secret", &[&short], "evt_1", NOW, BODY.as_bytes()),
        SignVector::of("the longest secret", &[&long], "evt_1", NOW, BODY.as_bytes()),
        SignVector::of("rotation: two secrets", &[&b, &a], "evt_1", NOW, BODY.as_bytes()),
        SignVector::of(
            "rotation: three secrets of different lengths",
            &[&c, &a, &short],
            "evt_1",
            NOW,
            BODY.as_bytes(),
        ),
        SignVector::of(
            "a UUID as id",
            &[&a],
            "01982716-5f00-7d0c-9d7a-0123456789ab",
            NOW,
            br#"{"id":"01982716-5f00-7d0c-9d7a-0123456789ab"}"#,
        ),
        SignVector::of(
            "an id with every sign that Postrider allows",
            &[&a],
            "AZaz09_:-",
            NOW,
            b"{}",
        ),
        SignVector::of(
            "an id that is not ASCII",
            &[&a],
            "событие-№-42-日本-🦀",
            NOW,
            b"{}",
        ),
        SignVector::of("an empty body", &[&a], "evt_empty", NOW, b""),
        SignVector::of("a body of one line end", &[&a], "evt_newline", NOW, b"\n"),
        SignVector::of("a body with full stops", &[&a], "evt_stops", NOW, b"1.2.3"),
        SignVector::of(
            "a body that is not ASCII",
            &[&a],
            "evt_unicode",
            NOW,
            r#"{"name":"Zoë","city":"Köln","note":"日本語 🦀"}"#.as_bytes(),
        ),
        SignVector::of(
            "a body with escapes",
            &[&a],
            "evt_escapes",
            NOW,
            br#"{"text":"tab\t quote\" nul\u0000 slash\/"}"#,
        ),
        SignVector::of(
            "a body with blanks as they came",
            &[&a],
            "evt_blanks",
            NOW,
            b"{ \"a\" :\t1 ,\r\n \"b\": [ ] }\n",
        ),
        SignVector::of("a body that is not UTF-8", &[&a], "evt_bytes", NOW, &every_byte),
        SignVector::of("a body of zeros", &[&a], "evt_zeros", NOW, &[0; 64]),
        SignVector::of("a large body", &[&a], "evt_large", NOW, large.as_bytes()),
        SignVector::of("time zero", &[&a], "evt_zero", 0, b"{}"),
        SignVector::of("a time after 2038", &[&a], "evt_later", 4_102_444_800, b"{}"),
    ]
}

//! The cases that `sdks/vectors.json` is made of. Everything is fixed: the file is the same whoever makes it.
//!
//! What each case should lead to is written here by hand. The signatures are not; that they are right is what the public vector
//! and the independent implementation show.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use signing::{Secret, idempotency_key, signature_header};

use crate::vector::{Body, Headers, SecretVector, SignVector, VerifyVector};

pub(crate) const PUBLIC_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NOW: i64 = 1_753_000_000;
const BODY: &str = r#"{"id":"evt_1","type":"domain.created","timestamp":"2025-07-20T08:26:40.000Z","data":{"domain":"example.org"}}"#;

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
        ("with a line end", format!("{}\n", secret("plain", 32)), None),
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

/// A message that is in order, to be changed.
struct Message {
    secrets: Vec<String>,
    headers: Headers,
    body: Vec<u8>,
    now: i64,
}

impl Message {
    fn signed(with: &[&str], known: &[&str]) -> Self {
        let parsed: Vec<_> = with
            .iter()
            .map(|text| Secret::parse(text).expect("valid"))
            .collect();
        let signature = signature_header(&parsed.iter().collect::<Vec<_>>(), "evt_1", NOW, BODY.as_bytes());
        Self {
            secrets: known.iter().map(|&secret| secret.to_owned()).collect(),
            headers: Headers {
                webhook_id: Some("evt_1".to_owned()),
                webhook_timestamp: Some(NOW.to_string()),
                webhook_signature: Some(signature),
            },
            body: BODY.as_bytes().to_vec(),
            now: NOW + 2,
        }
    }

    fn signature(&mut self) -> &mut String {
        self.headers.webhook_signature.as_mut().expect("it is signed")
    }
}

pub(crate) fn verify() -> Vec<VerifyVector> {
    let mut vectors = accepted();
    vectors.extend(of_headers());
    vectors.extend(of_time());
    vectors.extend(tampered());
    vectors
}

type Change = fn(&mut Message);

fn all(result: &str, cases: &[(&str, Change)]) -> Vec<VerifyVector> {
    let a = secret("a", 32);
    cases
        .iter()
        .map(|(name, change)| {
            let mut message = Message::signed(&[&a], &[&a]);
            change(&mut message);
            vector(name, message, result)
        })
        .collect()
}

fn vector(name: &str, message: Message, result: &str) -> VerifyVector {
    let vector = VerifyVector {
        name: name.to_owned(),
        secrets: message.secrets,
        headers: message.headers,
        body: Body::of(&message.body),
        now: message.now,
        tolerance_seconds: 300,
        result: result.to_owned(),
    };
    assert_eq!(vector.verdict(), result, "{name}");
    vector
}

fn accepted() -> Vec<VerifyVector> {
    let (a, b, c) = (secret("a", 32), secret("b", 32), secret("c", 48));
    let mut vectors = all(
        "ok",
        &[
            ("as it was sent", |_| {}),
            ("signed 300 seconds ago", |m| m.now = NOW + 300),
            ("signed 300 seconds ahead", |m| m.now = NOW - 300),
            ("behind a signature of an unknown version", |m| {
                m.signature().insert_str(0, "v1a,AAAA ")
            }),
            ("behind a signature that does not match", |m| {
                m.signature()
                    .insert_str(0, "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= ");
            }),
        ],
    );
    for (name, with, known) in [
        (
            "rotation: the receiver knows the new secret",
            vec![&b, &a],
            vec![&b],
        ),
        (
            "rotation: the receiver knows the old secret",
            vec![&b, &a],
            vec![&a],
        ),
        (
            "rotation: the receiver knows both, one signed",
            vec![&a],
            vec![&b, &a],
        ),
        (
            "rotation: three signed, one of them is known",
            vec![&c, &b, &a],
            vec![&a],
        ),
    ] {
        let with: Vec<_> = with.into_iter().map(String::as_str).collect();
        let known: Vec<_> = known.into_iter().map(String::as_str).collect();
        vectors.push(vector(name, Message::signed(&with, &known), "ok"));
    }
    vectors
}

fn of_headers() -> Vec<VerifyVector> {
    let mut vectors = all(
        "missing_header",
        &[
            ("no id", |m| m.headers.webhook_id = None),
            ("an empty id", |m| m.headers.webhook_id = Some(String::new())),
            ("no timestamp", |m| m.headers.webhook_timestamp = None),
            ("no signature", |m| m.headers.webhook_signature = None),
            ("an empty signature", |m| m.signature().clear()),
        ],
    );
    vectors.extend(all(
        "ambiguous_id",
        &[("an id with a full stop", |m| {
            m.headers.webhook_id = Some("evt.1".to_owned());
        })],
    ));
    vectors.extend(all(
        "bad_timestamp",
        &[
            ("a timestamp in words", |m| {
                m.headers.webhook_timestamp = Some("now".to_owned())
            }),
            ("a negative timestamp", |m| {
                m.headers.webhook_timestamp = Some("-1".to_owned())
            }),
            ("a date as timestamp", |m| {
                m.headers.webhook_timestamp = Some("2025-07-20T08:26:40Z".to_owned())
            }),
            ("a timestamp beyond every clock", |m| {
                m.headers.webhook_timestamp = Some("9".repeat(30))
            }),
        ],
    ));
    vectors
}

fn of_time() -> Vec<VerifyVector> {
    let mut vectors = all(
        "too_old",
        &[
            ("signed 301 seconds ago", |m| m.now = NOW + 301),
            ("signed a year ago", |m| m.now = NOW + 31_536_000),
            ("milliseconds are no seconds: a clock far ahead", |m| {
                m.now = NOW * 1_000
            }),
        ],
    );
    vectors.extend(all(
        "too_new",
        &[
            ("signed 301 seconds ahead", |m| m.now = NOW - 301),
            ("a timestamp in milliseconds", |m| {
                m.headers.webhook_timestamp = Some((NOW * 1_000).to_string())
            }),
        ],
    ));
    vectors
}

fn tampered() -> Vec<VerifyVector> {
    let mut vectors = all(
        "no_match",
        &[
            ("one letter of the body changed", |m| m.body[2] = b'I'),
            ("a line end added to the body", |m| m.body.push(b'\n')),
            ("the body cut short", |m| m.body.truncate(BODY.len() - 1)),
            ("the body emptied", |m| m.body.clear()),
            ("the body parsed and written again", |m| {
                m.body = BODY.replace(":", ": ").replace(",", ", ").into_bytes();
            }),
            ("another id", |m| m.headers.webhook_id = Some("evt_2".to_owned())),
            ("another timestamp", |m| {
                m.headers.webhook_timestamp = Some((NOW + 1).to_string())
            }),
            ("a secret that never signed", |m| {
                m.secrets = vec![secret("b", 32)]
            }),
            ("no secret known", |m| m.secrets.clear()),
            ("the signature of another version", |m| {
                *m.signature() = m.signature().replace("v1,", "v2,")
            }),
            ("the signature without its version", |m| {
                *m.signature() = m.signature().replace("v1,", "")
            }),
            ("one bit of the signature changed", |m| {
                let changed = if m.signature().as_bytes()[3] == b'A' {
                    "B"
                } else {
                    "A"
                };
                m.signature().replace_range(3..4, changed);
            }),
            ("the signature cut short", |m| m.signature().truncate(23)),
            ("a plain digest instead of a signature", |m| {
                *m.signature() = format!("v1,{}", idempotency_key(BODY.as_bytes()));
            }),
        ],
    );
    let a = secret("a", 32);
    let mut swapped = Message::signed(&[&a], &[&a]);
    let parsed = Secret::parse(&a).expect("valid");
    *swapped.signature() = signing::sign(&parsed, "evt_2", NOW, BODY.as_bytes());
    vectors.push(vector("the signature of another message", swapped, "no_match"));
    vectors
}

//! The messages of `sdks/vectors.json` that a receiver has to judge: one that is in order, changed in one way each.

use signing::{Secret, idempotency_key, signature_header};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::cases::{BODY, NOW, secret};
use crate::vector::{Body, Headers, VerifyVector};

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
                ..Headers::default()
            },
            body: BODY.as_bytes().to_vec(),
            now: NOW + 2,
        }
    }

    /// Another way to write the time, signed as it stands there: only who takes the text for a number is deceived.
    fn spell_time(&mut self, timestamp: &str) {
        let secret = Secret::parse(&self.secrets[0]).expect("valid");
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose_bytes()).expect("any length");
        mac.update(format!("evt_1.{timestamp}.{BODY}").as_bytes());
        self.headers.webhook_timestamp = Some(timestamp.to_owned());
        *self.signature() = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
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
            ("a timestamp with a sign", |m| m.spell_time("+1753000000")),
            ("a timestamp with a zero before it", |m| {
                m.spell_time("01753000000")
            }),
            ("a timestamp with a blank before it", |m| {
                m.spell_time(" 1753000000")
            }),
            ("a timestamp with a fraction", |m| m.spell_time("1753000000.0")),
            ("a timestamp with an exponent", |m| m.spell_time("1753e6")),
            ("a timestamp with underscores", |m| m.spell_time("1_753_000_000")),
            ("a timestamp in digits that are not ASCII", |m| {
                m.spell_time("١٧٥٣٠٠٠٠٠٠")
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
            ("the signature without its padding", |m| {
                *m.signature() = m.signature().replace('=', "")
            }),
            ("the signature in the alphabet of URLs", |m| {
                *m.signature() = m.signature().replace('+', "-").replace('/', "_")
            }),
            ("the signature in small letters", |m| {
                *m.signature() = m.signature().to_lowercase()
            }),
            ("a signature that is not ASCII", |m| {
                *m.signature() = "v1,ключ".to_owned()
            }),
            ("a tabulator between two signatures", |m| {
                m.signature()
                    .insert_str(0, "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\t");
            }),
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

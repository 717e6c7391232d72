//! An independent implementation, the PyPI package `standardwebhooks`, accepts what this crate signs and nothing else.

use std::time::{SystemTime, UNIX_EPOCH};

use rand::RngExt as _;
use rand::rngs::StdRng;
use signing::{Secret, signature_header};

use crate::python::{Message, verdicts};
use crate::vector::{Headers, Vectors};
use crate::vectors::text;

const MESSAGES: usize = 300;

struct Sent {
    known: String,
    headers: Headers,
    body: Vec<u8>,
}

fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is set");
    i64::try_from(since.as_secs()).expect("the clock is set")
}

/// Random text, since the package reads every body as UTF-8: letters of one to four bytes, and all that JSON escapes.
fn random_body(random: &mut StdRng) -> Vec<u8> {
    let length = random.random_range(0..400);
    (0..length)
        .map(|_| match random.random_range(0..4) {
            0 => random.random_range('\u{0}'..='\u{7f}'),
            1 => random.random_range('\u{80}'..='\u{7ff}'),
            2 => random.random_range('\u{e000}'..='\u{fffd}'),
            _ => random.random_range('\u{10000}'..='\u{10ffff}'),
        })
        .collect::<String>()
        .into_bytes()
}

/// Signed with one to three secrets, of which the receiver knows one.
fn random_message(random: &mut StdRng, number: usize) -> Sent {
    let secrets: Vec<_> = (0..random.random_range(1..=3))
        .map(|_| Secret::generate())
        .collect();
    let body = random_body(random);
    let (id, timestamp) = (format!("evt-{number}"), now());
    let signature = signature_header(&secrets.iter().collect::<Vec<_>>(), &id, timestamp, &body);
    Sent {
        known: secrets[random.random_range(0..secrets.len())]
            .reveal()
            .to_string(),
        headers: Headers {
            webhook_id: Some(id),
            webhook_timestamp: Some(timestamp.to_string()),
            webhook_signature: Some(signature),
            ..Headers::default()
        },
        body,
    }
}

impl Sent {
    fn message(&self) -> Message<'_> {
        Message {
            secrets: vec![&self.known],
            headers: self.headers.json(),
            body: &self.body,
            now: None,
        }
    }
}

fn judge(sent: &[Sent]) -> Vec<String> {
    verdicts(&sent.iter().map(Sent::message).collect::<Vec<_>>())
}

#[test]
fn an_independent_implementation_accepts_what_is_signed_here() {
    let mut random: StdRng = rand::make_rng();
    let sent: Vec<_> = (0..MESSAGES)
        .map(|number| random_message(&mut random, number))
        .collect();
    for (sent, verdict) in sent.iter().zip(judge(&sent)) {
        assert_eq!(
            verdict,
            "ok",
            "{:?} {:?}",
            sent.headers,
            String::from_utf8_lossy(&sent.body)
        );
    }
}

#[test]
fn an_independent_implementation_refuses_what_was_tampered_with() {
    let mut random: StdRng = rand::make_rng();
    let sent: Vec<_> = (0..MESSAGES)
        .map(|number| {
            let mut sent = random_message(&mut random, number);
            match number % 4 {
                0 => sent.body.push(b' '),
                1 => sent.headers.webhook_id = Some("another".to_owned()),
                2 => sent.headers.webhook_timestamp = Some((now() + 7).to_string()),
                _ => sent.known = Secret::generate().reveal().to_string(),
            }
            sent
        })
        .collect();
    for (sent, verdict) in sent.iter().zip(judge(&sent)) {
        assert_eq!(
            verdict, "WebhookVerificationError: No matching signature found",
            "{:?}",
            sent.headers
        );
    }
}

/// All but the bodies that are not UTF-8, which the package does not take.
#[test]
fn an_independent_implementation_agrees_with_the_vectors() {
    let vectors: Vectors = serde_json::from_str(&text()).expect("the file has its format");
    let signed: Vec<_> = vectors
        .sign
        .iter()
        .filter(|vector| std::str::from_utf8(&vector.body.bytes()).is_ok())
        .flat_map(|vector| vector.secrets.iter().map(move |secret| (vector, secret)))
        .map(|(vector, secret)| {
            let headers = Headers {
                webhook_id: Some(vector.id.clone()),
                webhook_timestamp: Some(vector.timestamp.to_string()),
                webhook_signature: Some(vector.signature.clone()),
                ..Headers::default()
            };
            (secret, headers, vector.body.bytes(), vector.timestamp)
        })
        .collect();
    let messages: Vec<_> = signed
        .iter()
        .map(|(secret, headers, body, now)| Message {
            secrets: vec![secret],
            headers: headers.json(),
            body,
            now: Some(*now),
        })
        .collect();
    assert!(messages.len() >= 20, "{}", messages.len());
    assert_eq!(verdicts(&messages), vec!["ok"; messages.len()]);
    let bodies: Vec<_> = vectors.verify.iter().map(|vector| vector.body.bytes()).collect();
    let messages: Vec<_> = vectors
        .verify
        .iter()
        .zip(&bodies)
        .map(|(vector, body)| Message {
            secrets: vector.secrets.iter().map(String::as_str).collect(),
            headers: vector.headers.json(),
            body,
            now: Some(vector.now),
        })
        .collect();
    for (vector, verdict) in vectors.verify.iter().zip(verdicts(&messages)) {
        assert_eq!(
            verdict == "ok",
            vector.result == "ok",
            "{}: {verdict}",
            vector.name
        );
    }
}

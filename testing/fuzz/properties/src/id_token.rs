//! What a provider of OpenID Connect, or a browser that says it comes from there, can send: ID tokens, key sets, discovery documents, what
//! the cookie of a sign-in holds. No token is believed but those that were signed, however they are bent.

use std::sync::LazyLock;

use chrono::DateTime;
use oidc::{Attempt, Discovery, Expected, Jwks, Seal, verify};
use serde::Deserialize;
use serde_json::Value;

/// Made by another implementation.
static VECTORS: LazyLock<(Vectors, Jwks)> = LazyLock::new(|| {
    let vectors = include_str!("../../../../libs/oidc/tests/vectors.json");
    let vectors: Vectors = serde_json::from_str(vectors).expect("the vectors are readable");
    let keys = Jwks::read(vectors.jwks.to_string().as_bytes()).expect("the keys are readable");
    (vectors, keys)
});

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vectors {
    issuer: String,
    client_id: String,
    nonce: String,
    now: i64,
    jwks: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    token: String,
    outcome: String,
}

/// Checks the property.
pub fn check(input: &[u8]) {
    let (vectors, keys) = &*VECTORS;
    let expected = Expected {
        issuer: &vectors.issuer,
        client_id: &vectors.client_id,
        nonce: &vectors.nonce,
        max_age: None,
        now: DateTime::from_timestamp(vectors.now, 0).expect("the vectors have a time"),
    };
    if let Ok(text) = std::str::from_utf8(input) {
        let believed = |token: &str, keys: &Jwks| verify(token, keys, &expected).is_ok();
        let is_signed = |token: &str| {
            vectors
                .cases
                .iter()
                // Nothing is asked of the time of the sign-in here.
                .any(|it| it.token == token && ["valid", "auth_time"].contains(&&*it.outcome))
        };
        assert!(!believed(text, keys) || is_signed(text), "{text} is believed");
        for case in &vectors.cases {
            let bent = format!("{text}{}", case.token);
            assert!(!believed(&bent, keys) || is_signed(&bent), "{bent} is believed");
        }
        let (seal, now) = (Seal::of(b"ours"), expected.now);
        assert!(
            Attempt::read(text, &seal, now).is_none(),
            "{text} was not sealed here"
        );
        if let Some(attempt) = Attempt::read(&seal.set(text), &seal, now) {
            assert!(
                Attempt::read(&attempt.written(&seal), &seal, now) == Some(attempt),
                "{text} is not read as it was written"
            );
        }
    }
    if let Ok(strangers) = Jwks::read(input) {
        for case in &vectors.cases {
            // A stranger's keys may verify what the stranger signed; a key of ours is only in it when it was put there.
            let _ = verify(&case.token, &strangers, &expected);
        }
    }
    if let Ok(read) = Discovery::read(input, &vectors.issuer) {
        assert!(
            !format!("{read:?}").contains("scheme: \"http\""),
            "an endpoint is without TLS"
        );
    }
}

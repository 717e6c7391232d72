//! ID tokens that an independent implementation made, and what it says of them (vectors.py).

#![allow(
    clippy::unwrap_used,
    reason = "what the tests are built of fails like the tests themselves"
)]

use chrono::{DateTime, TimeDelta};
use oidc::{Expected, Jwks, TokenError, verify};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

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
#[serde(rename_all = "camelCase")]
struct Case {
    name: String,
    token: String,
    /// `valid`, the kind of error, or the name of the claim that is wrong.
    outcome: String,
    max_age: Option<i64>,
}

fn vectors() -> (Vectors, Jwks) {
    let vectors: Vectors = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let keys = Jwks::read(vectors.jwks.to_string().as_bytes()).unwrap();
    (vectors, keys)
}

impl Vectors {
    fn expected(&self, max_age: Option<i64>) -> Expected<'_> {
        Expected {
            issuer: &self.issuer,
            client_id: &self.client_id,
            nonce: &self.nonce,
            max_age: max_age.map(TimeDelta::seconds),
            now: DateTime::from_timestamp(self.now, 0).unwrap(),
        }
    }
}

fn outcome(error: &TokenError) -> &'static str {
    match error {
        TokenError::Malformed(_) => "malformed",
        TokenError::Algorithm(_) => "algorithm",
        TokenError::UnknownKey => "unknown-key",
        TokenError::Signature => "signature",
        TokenError::Claim { name, .. } => name,
    }
}

#[test]
fn tokens_are_judged_as_the_other_implementation_says() {
    let (vectors, keys) = vectors();
    for case in &vectors.cases {
        let judged = verify(&case.token, &keys, &vectors.expected(case.max_age));
        let found = judged.as_ref().map_or_else(outcome, |_| "valid");
        assert_eq!(found, case.outcome, "{}: {judged:?}", case.name);
    }
    assert!(vectors.cases.len() > 60, "{}", vectors.cases.len());
}

#[test]
fn a_token_that_is_valid_says_who_it_is() {
    let (vectors, keys) = vectors();
    let token = &vectors.cases[0].token;
    let claims = verify(token, &keys, &vectors.expected(None)).unwrap();
    assert_eq!(
        (claims.subject.as_str(), claims.name().as_str()),
        ("7f3a", "Ada Lovelace")
    );
    assert_eq!(claims.texts("groups"), ["on-call", "everyone"]);
    assert_eq!(claims.authenticated_at.unwrap().timestamp(), vectors.now - 100);
}

#[test]
fn the_only_key_needs_no_name() {
    let (vectors, _) = vectors();
    let keys = vectors.jwks["keys"].as_array().unwrap();
    let only = serde_json::json!({ "keys": [keys.iter().find(|key| key["kid"] == "rsa").unwrap()] });
    let nameless = vectors
        .cases
        .iter()
        .find(|case| case.name.starts_with("no kid"))
        .unwrap();
    let only = Jwks::read(only.to_string().as_bytes()).unwrap();
    verify(&nameless.token, &only, &vectors.expected(None)).unwrap();
}

proptest! {
    /// A token in which anything was changed is refused, and nothing panics.
    #[test]
    fn no_changed_token_is_believed(at in 0_usize..4_000, byte in 0x20_u8..0x7f, case in 0_usize..3) {
        let (vectors, keys) = vectors();
        let mut token = vectors.cases[case].token.clone().into_bytes();
        let at = at % token.len();
        prop_assume!(token[at] != byte);
        token[at] = byte;
        let token = String::from_utf8(token).unwrap();
        prop_assert!(verify(&token, &keys, &vectors.expected(None)).is_err(), "{}", token);
    }

    #[test]
    fn nothing_that_is_no_token_panics(text in ".{0,200}", document in ".{0,200}") {
        let (vectors, keys) = vectors();
        prop_assert!(verify(&text, &keys, &vectors.expected(None)).is_err());
        let _ = Jwks::read(document.as_bytes());
        let _ = oidc::Discovery::read(document.as_bytes(), &vectors.issuer);
        let seal = oidc::Seal::of(b"ours");
        let _ = oidc::Attempt::read(&seal.set(&text), &seal, DateTime::UNIX_EPOCH);
    }
}

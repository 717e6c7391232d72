//! A sender: its key and its statements.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use chrono::{DateTime, Utc};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;
use webpush::VapidKey;

pub(crate) struct Sender(EcdsaKeyPair);

impl Sender {
    pub(crate) fn new() -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random);
        Self(pair.unwrap())
    }

    pub(crate) fn key_text(&self) -> String {
        BASE64.encode(self.0.public_key().as_ref())
    }

    pub(crate) fn key(&self) -> VapidKey {
        VapidKey::parse(&self.key_text()).unwrap()
    }

    pub(crate) fn token(&self, audience: &str, expires_at: DateTime<Utc>) -> String {
        let header = BASE64.encode(r#"{"typ":"JWT","alg":"ES256"}"#);
        let claims = json!({ "aud": audience, "exp": expires_at.timestamp(), "sub": "mailto:a@example.com" });
        let signed = format!("{header}.{}", BASE64.encode(claims.to_string()));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", BASE64.encode(signature.as_ref()))
    }

    pub(crate) fn vapid(&self, audience: &str, expires_at: DateTime<Utc>) -> String {
        format!(
            "vapid t={}, k={}",
            self.token(audience, expires_at),
            self.key_text()
        )
    }
}

//! The format of `sdks/vectors.json`, which `sdks/README.md` documents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use signing::{Notification, Secret, SignedHeaders, idempotency_key, receive, signature_header, verify};
use std::time::Duration;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Vectors {
    pub(crate) format: u32,
    pub(crate) about: String,
    pub(crate) secrets: Vec<SecretVector>,
    pub(crate) sign: Vec<SignVector>,
    pub(crate) verify: Vec<VerifyVector>,
    pub(crate) notifications: Vec<NotificationVector>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SecretVector {
    pub(crate) name: String,
    pub(crate) secret: String,
    /// The bytes of one that is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_hex: Option<String>,
    /// What is wrong with one that is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SignVector {
    pub(crate) name: String,
    pub(crate) secrets: Vec<String>,
    pub(crate) id: String,
    pub(crate) timestamp: i64,
    #[serde(flatten)]
    pub(crate) body: Body,
    pub(crate) signature: String,
    pub(crate) idempotency_key: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VerifyVector {
    pub(crate) name: String,
    pub(crate) secrets: Vec<String>,
    pub(crate) headers: Headers,
    #[serde(flatten)]
    pub(crate) body: Body,
    pub(crate) now: i64,
    pub(crate) tolerance_seconds: u64,
    pub(crate) result: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NotificationVector {
    pub(crate) name: String,
    pub(crate) secrets: Vec<String>,
    pub(crate) headers: Headers,
    #[serde(flatten)]
    pub(crate) body: Body,
    pub(crate) now: i64,
    pub(crate) tolerance_seconds: u64,
    pub(crate) result: String,
    /// What is read in one that is `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) notification: Option<Read>,
}

/// A notification as the file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Read {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    /// The time in whole milliseconds, rounded down: not every language has finer ones.
    pub(crate) timestamp_millis: i64,
    pub(crate) data: Value,
    pub(crate) idempotency_key: String,
    pub(crate) attempted_at: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Headers {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) webhook_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) webhook_timestamp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) webhook_signature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idempotency_key: Option<String>,
}

/// Readable where it is text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Body {
    Body(String),
    BodyBase64(String),
}

impl Body {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Body(text.to_owned()),
            Err(_) => Self::BodyBase64(STANDARD.encode(bytes)),
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Body(text) => text.clone().into_bytes(),
            Self::BodyBase64(text) => STANDARD.decode(text).expect("the file holds base64"),
        }
    }
}

impl Headers {
    pub(crate) fn json(&self) -> Value {
        serde_json::to_value(self).expect("headers are plain text")
    }

    pub(crate) fn borrowed(&self) -> SignedHeaders<'_> {
        SignedHeaders {
            id: self.webhook_id.as_deref(),
            timestamp: self.webhook_timestamp.as_deref(),
            signature: self.webhook_signature.as_deref(),
        }
    }
}

impl SecretVector {
    pub(crate) fn of(name: &str, secret: &str) -> Self {
        let parsed = Secret::parse(secret);
        Self {
            name: name.to_owned(),
            secret: secret.to_owned(),
            key_hex: parsed
                .as_ref()
                .ok()
                .map(|secret| hex::encode(secret.expose_bytes())),
            error: parsed.err().map(|error| error.code().to_owned()),
        }
    }
}

impl SignVector {
    pub(crate) fn of(name: &str, secrets: &[&str], id: &str, timestamp: i64, body: &[u8]) -> Self {
        let parsed = parse_all(secrets);
        Self {
            name: name.to_owned(),
            secrets: secrets.iter().map(|&secret| secret.to_owned()).collect(),
            id: id.to_owned(),
            timestamp,
            body: Body::of(body),
            signature: signature_header(&parsed.iter().collect::<Vec<_>>(), id, timestamp, body),
            idempotency_key: idempotency_key(body),
        }
    }
}

impl VerifyVector {
    /// What this crate says of it.
    pub(crate) fn verdict(&self) -> &'static str {
        let secrets = parse_all(&self.secrets);
        let outcome = verify(
            &secrets.iter().collect::<Vec<_>>(),
            self.headers.borrowed(),
            &self.body.bytes(),
            self.now,
            Duration::from_secs(self.tolerance_seconds),
        );
        outcome.map_or_else(|error| error.code(), |()| "ok")
    }
}

impl NotificationVector {
    /// What this crate makes of it: a notification, or the word for what is wrong.
    pub(crate) fn outcome(&self) -> Result<Read, String> {
        let secrets = parse_all(&self.secrets);
        let outcome = receive(
            &secrets.iter().collect::<Vec<_>>(),
            self.headers.borrowed(),
            &self.body.bytes(),
            self.now,
            Duration::from_secs(self.tolerance_seconds),
        );
        outcome.map(Read::from).map_err(|error| error.code().to_owned())
    }

    /// What the file wants.
    pub(crate) fn wanted(&self) -> Result<Read, String> {
        let read = self.notification.clone().filter(|_| self.result == "ok");
        read.ok_or_else(|| self.result.clone())
    }
}

impl From<Notification> for Read {
    fn from(notification: Notification) -> Self {
        Self {
            id: notification.id,
            event_type: notification.event_type,
            timestamp_millis: notification.timestamp.timestamp_millis(),
            data: notification.data.into(),
            idempotency_key: notification.idempotency_key,
            attempted_at: notification.attempted_at,
        }
    }
}

fn parse_all(secrets: &[impl AsRef<str>]) -> Vec<Secret> {
    let parse = |secret: &str| Secret::parse(secret).expect("the file's secrets are valid");
    secrets.iter().map(|secret| parse(secret.as_ref())).collect()
}

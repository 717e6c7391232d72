//! The secrets that a receiver knows, and what it thinks of a signature.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use signing::{Secret, SecretError, SignedHeaders, verify};

/// What the receiver thinks of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Its body has not been read yet, or never came.
    Unread,
    /// No secret is known for its path.
    Unchecked,
    /// Signed with a known secret, at the right time.
    Verified,
    /// A header for the signature is missing or cannot be read.
    Unsigned,
    /// Signed too long ago or in the future.
    Untimely,
    /// Signed with another secret, or changed on its way.
    Forged,
}

/// A secret, for all paths or for one. While several are known for a path, each of them will do.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SecretFor {
    /// The path of the endpoint that it is for; every path when absent.
    #[serde(default)]
    pub path: Option<String>,
    /// The secret.
    pub secret: SecretText,
}

/// A signing secret as JSON has it.
#[derive(Debug, Clone)]
pub struct SecretText(pub Secret);

/// Why secrets were not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret is invalid")]
pub struct KeyringError(#[source] pub SecretError);

impl SecretFor {
    /// A secret for every path.
    pub fn everywhere(secret: &str) -> Result<Self, KeyringError> {
        Self::new(None, secret)
    }

    /// A secret for one path, which begins with a slash.
    pub fn path(path: &str, secret: &str) -> Result<Self, KeyringError> {
        Self::new(Some(path.to_owned()), secret)
    }

    fn new(path: Option<String>, secret: &str) -> Result<Self, KeyringError> {
        let secret = SecretText(Secret::parse(secret).map_err(KeyringError)?);
        Ok(Self { path, secret })
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Secret::parse(&text).map(Self).map_err(D::Error::custom)
    }
}

impl Verdict {
    /// Whether the request is taken for what it says.
    pub fn is_believed(self) -> bool {
        matches!(self, Self::Unchecked | Self::Verified)
    }

    /// Its name, as the report has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unread => "unread",
            Self::Unchecked => "unchecked",
            Self::Verified => "verified",
            Self::Unsigned => "unsigned",
            Self::Untimely => "untimely",
            Self::Forged => "forged",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<signing::VerifyError> for Verdict {
    fn from(error: signing::VerifyError) -> Self {
        use signing::VerifyError as E;
        match error {
            E::MissingHeader(_) | E::AmbiguousId | E::BadTimestamp => Self::Unsigned,
            E::TooOld | E::TooNew => Self::Untimely,
            E::NoMatch => Self::Forged,
        }
    }
}

/// The secrets in force.
#[derive(Debug, Default)]
pub(crate) struct Keyring(Vec<SecretFor>);

impl Keyring {
    pub(crate) fn new(secrets: Vec<SecretFor>) -> Self {
        Self(secrets)
    }

    /// What to think of this request.
    pub(crate) fn check(
        &self,
        path: &str,
        headers: SignedHeaders<'_>,
        body: &[u8],
        now: DateTime<Utc>,
        tolerance: Duration,
    ) -> Verdict {
        let is_for_it = |known: &&SecretFor| known.path.as_deref().is_none_or(|only| only == path);
        let secrets: Vec<_> = self
            .0
            .iter()
            .filter(is_for_it)
            .map(|known| &known.secret.0)
            .collect();
        if secrets.is_empty() {
            return Verdict::Unchecked;
        }
        verify(&secrets, headers, body, now.timestamp(), tolerance)
            .map_or_else(Verdict::from, |()| Verdict::Verified)
    }

    /// How many there are; they themselves are never shown.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

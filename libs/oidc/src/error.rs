//! What goes wrong, by what the caller can do about it.

use std::sync::Arc;

use crate::attempt::AttemptError;

/// A document of the provider that cannot be used. Its operators have to mend it, or the configuration names another one.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Not JSON, or not of the form that the specification gives it.
    #[error("the {0} is not readable")]
    Unreadable(&'static str, #[source] serde_json::Error),
    /// It is about another issuer.
    #[error(
        "the document is of the issuer {found:?} instead of {expected:?}; both must be equal, to the last slash"
    )]
    OtherIssuer {
        /// As configured.
        expected: String,
        /// In the document.
        found: String,
    },
    /// An endpoint to which nothing secret may be sent.
    #[error(
        "{name} is {found:?}, but must be an https:// URL without a user or a fragment (http:// on loopback alone)"
    )]
    Endpoint {
        /// Which member of the document.
        name: &'static str,
        /// What it holds.
        found: String,
    },
    /// The provider cannot what is needed.
    #[error("the provider does not offer {0}")]
    Lacks(&'static str),
    /// There is no key that this crate could verify with.
    #[error("the key set has no RSA or P-256 key for signatures")]
    NoKeys,
}

/// Why an ID token is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not a signed token in compact form.
    #[error("the ID token is malformed: {0}")]
    Malformed(&'static str),
    /// Another algorithm than the fixed list has, `none` and those of shared secrets among them.
    #[error("the ID token is signed with {0:?}, which is not accepted; RS256, PS256 and ES256 are")]
    Algorithm(String),
    /// No key of the set is the one that the token names: it may be new.
    #[error("the ID token is signed with a key that the provider does not publish")]
    UnknownKey,
    /// The signature is not that of the key.
    #[error("the signature of the ID token is wrong")]
    Signature,
    /// A claim that is missing, or not what it has to be.
    #[error("the claim {name} of the ID token {fault}")]
    Claim {
        /// Which one.
        name: &'static str,
        /// What is wrong with it.
        fault: &'static str,
    },
}

/// Why the provider was of no help.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The client for its requests could not be made.
    #[error("failed to set up the HTTP client")]
    SetUp(#[source] reqwest::Error),
    /// It did not answer in time, or not at all.
    #[error("{0} did not answer")]
    Away(&'static str, #[source] Option<reqwest::Error>),
    /// It has not answered yet, and the caller cannot wait any longer. The question goes on.
    #[error("{0} has not answered yet")]
    Late(&'static str),
    /// What one question came to for all who waited for it.
    #[error(transparent)]
    Together(#[from] Arc<ProviderError>),
    /// It answered with an error of its own.
    #[error("{name} answered with status {status}")]
    Status {
        /// Which of its endpoints.
        name: &'static str,
        /// What it said.
        status: u16,
    },
    /// It answered with more than is read.
    #[error("{0} answered with more than 1 MiB")]
    TooLong(&'static str),
    /// Its documents cannot be used.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// What it sent the browser back with is no answer to this sign-in, or a refusal.
    #[error(transparent)]
    Answer(#[from] AttemptError),
    /// It refused the code: it was used, is too old, or belongs to another client.
    #[error("the provider refused the code of the answer: {0}")]
    CodeRefused(String),
    /// The ID token is not one to believe.
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl TokenError {
    /// Whether it is a time that is wrong, which it also is when the clocks of the provider and of this machine lie apart.
    pub fn is_of_time(&self) -> bool {
        matches!(
            self,
            Self::Claim {
                name: "exp" | "iat" | "nbf" | "auth_time",
                ..
            }
        )
    }
}

impl ProviderError {
    /// Whether the provider is away or out of order, as opposed to a sign-in that it or we refuse.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Away(..) | Self::Late(_) | Self::TooLong(_) | Self::Document(_) | Self::SetUp(_) => true,
            Self::Together(error) => error.is_outage(),
            Self::Status { status, .. } => *status >= 500 || *status == 404 || *status == 429,
            Self::Answer(_) | Self::CodeRefused(_) | Self::Token(_) => false,
        }
    }
}

//! Signing in with a provider of OpenID Connect: the authorization code flow with PKCE, and the ID token that comes of it.
//!
//! All but [`Provider`] is pure: documents, keys, tokens and addresses are read, checked and made here without a network or a clock.
//! Algorithms are a fixed list (RS256, PS256, ES256), verified by `ring` with public keys alone. It deliberately keeps no session and no
//! access token, knows no roles, and reads nothing that is encrypted: what a person may follows from the claims, which the caller judges.

mod attempt;
mod claims;
mod discovery;
mod error;
mod health;
mod id_token;
mod jwks;
mod provider;

pub use attempt::{Attempt, AttemptError, Seal};
pub use claims::Claims;
pub use discovery::{Discovery, is_acceptable_issuer};
pub use error::{DocumentError, ProviderError, TokenError};
pub use health::Standing;
pub use id_token::{Expected, verify};
pub use jwks::Jwks;
pub use provider::{Client, Provider, SignIn};

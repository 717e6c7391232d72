//! What is recorded of one attempt to send a push.

use serde::{Deserialize, Serialize};

use crate::named;

/// How far an attempt has come.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum AttemptStatus {
    /// Claimed; the answer is not recorded yet.
    InProcess,
    /// Swrve accepted the push.
    Ok,
    /// It did not, or we could not ask.
    Error,
}

named!(AttemptStatus, "attempt status");

/// Whose fault a failed attempt was.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ErrorType {
    /// Swrve answered with an error, or could not be reached.
    Swrve,
    /// No Swrve push key is configured for the platform and message prototype.
    MessagePrototypeKey,
    /// Ours.
    Other,
}

named!(ErrorType, "error type");

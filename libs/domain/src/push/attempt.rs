//! What is recorded of one attempt to send a push.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! stored_name {
    ($name:ident { $($variant:ident => $text:literal),+ $(,)? }) => {
        impl $name {
            /// The name on the wire and in the database.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl FromStr for $name {
            type Err = String;

            /// Reads the stored name back; the error is the text that is none.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    other => Err(other.to_owned()),
                }
            }
        }
    };
}

/// How far an attempt has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AttemptStatus {
    /// Claimed; the answer is not recorded yet.
    InProcess,
    /// Swrve accepted the push.
    Ok,
    /// It did not, or we could not ask.
    Error,
}

stored_name!(AttemptStatus { InProcess => "IN_PROCESS", Ok => "OK", Error => "ERROR" });

/// Whose fault a failed attempt was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorType {
    /// Swrve answered with an error, or could not be reached.
    Swrve,
    /// No Swrve push key is configured for the platform and message prototype.
    MessagePrototypeKey,
    /// Ours.
    Other,
}

stored_name!(ErrorType { Swrve => "SWRVE", MessagePrototypeKey => "MESSAGE_PROTOTYPE_KEY", Other => "OTHER" });

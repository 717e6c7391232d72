//! What a request is refused with: status, number and words, as the contract names them.

use crate::VapidError;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The token of the endpoint cannot be decrypted or is of another version.
    #[error("Invalid token: this is no endpoint of this service")]
    Token,
    /// The client is not known (any more).
    #[error("UAID not found: delete this subscription")]
    NoUser,
    /// The body is longer than `max` bytes.
    #[error("The body is too long: at most {max} bytes are taken")]
    TooLarge {
        /// The longest that is taken.
        max: usize,
    },
    /// The client went while the message was on its way.
    #[error("User was deleted during routing: delete this subscription")]
    UserGone,
    /// The client does not have the channel (any more).
    #[error("No such subscription: delete it")]
    NoSubscription,
    /// The type of router in the path, or of the client, is not one of this service.
    #[error("Invalid router type: this service has webpush")]
    RouterType,
    /// The sender has not shown who it is.
    #[error(transparent)]
    Vapid(#[from] VapidError),
    /// The secret of the client is missing or wrong.
    #[error("Invalid authentication: send the secret of this registration as Authorization: Bearer …")]
    Secret,
    /// The headers about the encryption are missing or wrong.
    #[error("{0}")]
    Encryption(&'static str),
    /// The TTL is missing or no number.
    #[error("Missing TTL value: send the header TTL with a number of seconds")]
    NoTtl,
    /// The topic is not one.
    #[error("Topic must be at most 32 characters of the URL and filename safe Base64 alphabet")]
    Topic,
    /// The TTL is negative.
    #[error("TTL must not be negative")]
    NegativeTtl,
    /// There are several urgencies.
    #[error("Urgency must have one value: very-low, low, normal or high")]
    Urgency,
    /// What is no message id.
    #[error("Invalid message ID")]
    MessageId,
    /// The body of a registration cannot be read.
    #[error("The body is not the JSON that this request takes: {0}")]
    Body(&'static str),
    /// The client has as many channels as it may have.
    #[error("This client has as many subscriptions as it may have: delete some first")]
    Full,
    /// More messages than are taken.
    #[error("Too many messages: send fewer, and try this one again later")]
    TooMany,
    /// Nothing could be stored.
    #[error("The message could not be stored: try again later")]
    Storage,
    /// No such path.
    #[error("Not found")]
    NotFound,
    /// The path exists, but not for this method.
    #[error("Method not allowed")]
    MethodNotAllowed,
    /// Asked for by an operator who tests what becomes of an error.
    #[error("ERROR:Success")]
    Test,
}

impl Refusal {
    /// The status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::Token | Self::NotFound => 404,
            Self::NoUser | Self::UserGone | Self::NoSubscription => 410,
            Self::TooLarge { .. } => 413,
            Self::Vapid(_) | Self::Secret => 401,
            Self::RouterType
            | Self::Encryption(_)
            | Self::NoTtl
            | Self::Topic
            | Self::NegativeTtl
            | Self::Urgency
            | Self::MessageId
            | Self::Body(_)
            | Self::Full => 400,
            Self::MethodNotAllowed => 405,
            Self::TooMany => 429,
            Self::Storage => 503,
            Self::Test => 418,
        }
    }

    /// The number of the error; some have none.
    pub fn errno(&self) -> Option<u16> {
        Some(match self {
            Self::Token => 102,
            Self::NoUser => 103,
            Self::TooLarge { .. } => 104,
            Self::UserGone => 105,
            Self::NoSubscription => 106,
            Self::RouterType => 108,
            Self::Vapid(_) | Self::Secret => 109,
            Self::Encryption(_) => 110,
            Self::NoTtl => 111,
            Self::Topic => 113,
            Self::NegativeTtl => 114,
            // To be tried again, each time after a longer pause.
            Self::Storage | Self::TooMany => 201,
            Self::Test => 999,
            Self::Urgency
            | Self::MessageId
            | Self::Body(_)
            | Self::Full
            | Self::NotFound
            | Self::MethodNotAllowed => {
                return None;
            }
        })
    }

    /// As it is named in metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::NoUser => "no_user",
            Self::TooLarge { .. } => "too_large",
            Self::UserGone => "user_gone",
            Self::NoSubscription => "no_subscription",
            Self::RouterType => "router_type",
            Self::Vapid(_) => "vapid",
            Self::Secret => "secret",
            Self::Encryption(_) => "encryption",
            Self::NoTtl | Self::NegativeTtl => "ttl",
            Self::Topic => "topic",
            Self::Urgency => "urgency",
            Self::MessageId => "message_id",
            Self::Body(_) => "body",
            Self::Full => "full",
            Self::TooMany => "too_many",
            Self::Storage => "storage",
            Self::NotFound | Self::MethodNotAllowed => "path",
            Self::Test => "test",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_numbers_are_those_of_the_contract() {
        for (refusal, status, errno) in [
            (Refusal::Token, 404, 102),
            (Refusal::NoUser, 410, 103),
            (Refusal::TooLarge { max: 1 }, 413, 104),
            (Refusal::UserGone, 410, 105),
            (Refusal::NoSubscription, 410, 106),
            (Refusal::RouterType, 400, 108),
            (Refusal::Vapid(VapidError::MissingKey), 401, 109),
            (Refusal::Encryption("a"), 400, 110),
            (Refusal::NoTtl, 400, 111),
            (Refusal::Topic, 400, 113),
            (Refusal::NegativeTtl, 400, 114),
            (Refusal::Storage, 503, 201),
        ] {
            assert_eq!(
                (refusal.status(), refusal.errno()),
                (status, Some(errno)),
                "{refusal:?}"
            );
            assert!(!refusal.to_string().is_empty());
        }
    }
}

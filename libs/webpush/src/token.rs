//! The token in an endpoint: which channel of which client it leads to, and who alone may use it.

use chrono::{DateTime, Utc};
use ring::digest;
use uuid::Uuid;

use crate::{Keys, VapidKey};

const UUID: usize = 16;
const HASH: usize = 32;

/// Which kind of endpoint a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenVersion {
    /// Any sender may use it: `/wpush/v1/…`, also `/wpush/…`.
    V1,
    /// Only the sender with the key that it was made for: `/wpush/v2/…`.
    V2,
}

/// What an endpoint leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscription {
    /// The client.
    pub uaid: Uuid,
    /// Its channel.
    pub channel: Uuid,
    /// The SHA-256 of the one key that may send to it.
    pub key_hash: Option<[u8; HASH]>,
}

impl Subscription {
    /// A channel that is restricted to a sender if `key` says so.
    pub fn new(uaid: Uuid, channel: Uuid, key: Option<&VapidKey>) -> Self {
        Self {
            uaid,
            channel,
            key_hash: key.map(hash),
        }
    }

    /// The version of its endpoint.
    pub fn version(&self) -> TokenVersion {
        match self.key_hash {
            None => TokenVersion::V1,
            Some(_) => TokenVersion::V2,
        }
    }

    /// The token.
    pub fn seal(&self, keys: &Keys, at: DateTime<Utc>) -> String {
        let mut plain = Vec::with_capacity(2 * UUID + HASH);
        plain.extend_from_slice(self.uaid.as_bytes());
        plain.extend_from_slice(self.channel.as_bytes());
        plain.extend_from_slice(self.key_hash.as_ref().map_or(&[], |hash| hash.as_slice()));
        keys.seal(&plain, at)
    }

    /// Reads a token of the version that its path names.
    pub fn open(keys: &Keys, version: TokenVersion, token: &str) -> Option<Self> {
        let plain = keys.open(token)?;
        let (uaid, rest) = plain.split_first_chunk::<UUID>()?;
        let (channel, rest) = rest.split_first_chunk::<UUID>()?;
        let key_hash = match version {
            TokenVersion::V1 if rest.is_empty() => None,
            TokenVersion::V1 => return None,
            TokenVersion::V2 => Some(rest.try_into().ok()?),
        };
        Some(Self {
            uaid: Uuid::from_bytes(*uaid),
            channel: Uuid::from_bytes(*channel),
            key_hash,
        })
    }

    /// Whether a sender with this key, or without one, may use the endpoint.
    pub fn allows(&self, key: Option<&VapidKey>) -> bool {
        match (self.key_hash, key) {
            (None, _) => true,
            (Some(_), None) => false,
            // Both are public: a comparison that takes a constant time would keep nothing secret.
            (Some(expected), Some(key)) => expected == hash(key),
        }
    }
}

/// The endpoint of a subscription, below the URL of the endpoint nodes.
pub fn endpoint_url(base: &str, subscription: &Subscription, keys: &Keys, at: DateTime<Utc>) -> String {
    let version = match subscription.version() {
        TokenVersion::V1 => "v1",
        TokenVersion::V2 => "v2",
    };
    let token = subscription.seal(keys, at);
    format!("{}/wpush/{version}/{token}", base.trim_end_matches('/'))
}

fn hash(key: &VapidKey) -> [u8; HASH] {
    let digest = digest::digest(&digest::SHA256, key.as_bytes());
    let mut hash = [0; HASH];
    hash.copy_from_slice(digest.as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base64url;

    fn keys() -> Keys {
        Keys::parse(&base64url::encode(&[5; 32])).unwrap()
    }

    fn key(byte: u8) -> VapidKey {
        let mut bytes = [byte; 65];
        bytes[0] = 4;
        VapidKey::parse(&base64url::encode(&bytes)).unwrap()
    }

    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

    #[test]
    fn an_endpoint_names_its_version_and_fits_into_a_path() {
        let open = Subscription::new(Uuid::nil(), Uuid::max(), None);
        let url = endpoint_url("https://push.example/", &open, &keys(), NOW);
        let token = url.strip_prefix("https://push.example/wpush/v1/").unwrap();
        assert!(!token.contains(['=', '/', '+']), "{token}");
        assert_eq!(Subscription::open(&keys(), TokenVersion::V1, token), Some(open));
        let restricted = Subscription::new(Uuid::nil(), Uuid::max(), Some(&key(1)));
        let url = endpoint_url("http://localhost:8082", &restricted, &keys(), NOW);
        assert!(url.starts_with("http://localhost:8082/wpush/v2/"), "{url}");
    }

    #[test]
    fn a_token_is_of_the_version_of_its_path_only() {
        let open = Subscription::new(Uuid::nil(), Uuid::max(), None).seal(&keys(), NOW);
        let restricted = Subscription::new(Uuid::nil(), Uuid::max(), Some(&key(1))).seal(&keys(), NOW);
        assert_eq!(Subscription::open(&keys(), TokenVersion::V2, &open), None);
        assert_eq!(Subscription::open(&keys(), TokenVersion::V1, &restricted), None);
        for length in [0, 16, 31, 33, 63, 65] {
            let wrong = keys().seal(&vec![1; length], NOW);
            for version in [TokenVersion::V1, TokenVersion::V2] {
                assert_eq!(Subscription::open(&keys(), version, &wrong), None, "{length}");
            }
        }
    }

    #[test]
    fn only_the_key_it_was_made_for_may_use_a_restricted_endpoint() {
        let restricted = Subscription::new(Uuid::nil(), Uuid::max(), Some(&key(1)));
        assert!(restricted.allows(Some(&key(1))));
        assert!(!restricted.allows(Some(&key(2))));
        assert!(!restricted.allows(None));
        let open = Subscription::new(Uuid::nil(), Uuid::max(), None);
        assert!(open.allows(None) && open.allows(Some(&key(2))));
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_opened(uaid: u128, channel: u128, byte: Option<u8>) {
            let key = byte.map(key);
            let made = Subscription::new(Uuid::from_u128(uaid), Uuid::from_u128(channel), key.as_ref());
            let sealed = made.seal(&keys(), NOW);
            prop_assert_eq!(Subscription::open(&keys(), made.version(), &sealed), Some(made));
        }
    }
}

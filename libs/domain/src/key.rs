//! API keys: what they look like, what they may do, and the only form in which they are stored.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What the holder of a key may do. A key has one role or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Hand in pushes and events, and ask what became of them.
    Ingest,
    /// Look at everything, change nothing.
    Viewer,
    /// Look at everything and mend it.
    Operator,
    /// Everything.
    Admin,
    /// Look after the subscriptions of one reseller, and nothing of the house. Stands alone, and the key names the reseller.
    Reseller,
}

impl Role {
    /// Every role there is.
    pub const ALL: [Self; 5] = [
        Self::Ingest,
        Self::Viewer,
        Self::Operator,
        Self::Admin,
        Self::Reseller,
    ];

    /// The roles of the house: all but the resellers' own. They may be combined.
    pub const OF_THE_HOUSE: [Self; 4] = [Self::Ingest, Self::Viewer, Self::Operator, Self::Admin];

    /// The stored and displayed name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Reseller => "reseller",
        }
    }

    /// Whether the role may hand in pushes and events.
    #[must_use]
    pub fn may_ingest(self) -> bool {
        matches!(self, Self::Ingest | Self::Admin)
    }

    /// Whether the role may read what became of any push or event. Every role of the house may; a reseller sees its own
    /// notifications elsewhere.
    #[must_use]
    pub fn may_read(self) -> bool {
        self != Self::Reseller
    }

    /// Whether the role may look at the whole installation: dead letters, jobs, the record of what was done.
    #[must_use]
    pub fn may_view(self) -> bool {
        matches!(self, Self::Viewer | Self::Operator | Self::Admin)
    }

    /// Whether the role may mend the installation: replay, discard, pause, cancel.
    #[must_use]
    pub fn may_operate(self) -> bool {
        matches!(self, Self::Operator | Self::Admin)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A role's name that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown role {0:?}: use one of ingest, viewer, operator, admin, reseller")]
pub struct UnknownRole(pub String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == name)
            .ok_or_else(|| UnknownRole(name.to_owned()))
    }
}

/// The SHA-256 digest of a key: what is stored and compared.
///
/// A key carries 256 random bits, so a plain digest cannot be searched for; a slow password hash would only cost time
/// on every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// The digest of a key as its holder presents it.
    #[must_use]
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// The raw 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Writes a key from 32 random bytes: `pr_` and 64 hexadecimal digits.
///
/// The prefix lets secret scanners find a key that leaked.
#[must_use]
pub fn format_key(random: &[u8; 32]) -> String {
    use fmt::Write as _;
    random.iter().fold(String::from("pr_"), |mut key, byte| {
        write!(key, "{byte:02x}").expect("invariant: writing to a String cannot fail");
        key
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_is_read_back_from_its_name() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert_eq!("root".parse::<Role>(), Err(UnknownRole("root".to_owned())));
    }

    #[test]
    fn a_key_shows_its_kind_and_all_its_randomness() {
        let key = format_key(&[0xab; 32]);
        assert_eq!(key.len(), 3 + 64);
        assert!(key.starts_with("pr_abab"));
        assert_ne!(KeyDigest::of(&key), KeyDigest::of(&format_key(&[0xac; 32])));
    }

    #[test]
    fn viewers_and_operators_cannot_hand_in_pushes() {
        assert!(Role::Ingest.may_ingest() && Role::Admin.may_ingest());
        assert!(!Role::Viewer.may_ingest() && !Role::Operator.may_ingest());
    }

    #[test]
    fn whoever_mends_may_look_and_neither_ingest_nor_resellers_may() {
        let with = |allows: fn(Role) -> bool| {
            Role::ALL
                .into_iter()
                .filter(|role| allows(*role))
                .collect::<Vec<_>>()
        };
        assert_eq!(with(Role::may_view), [Role::Viewer, Role::Operator, Role::Admin]);
        assert_eq!(with(Role::may_operate), [Role::Operator, Role::Admin]);
    }

    #[test]
    fn resellers_may_nothing_of_what_the_house_may() {
        assert!(!Role::Reseller.may_ingest() && !Role::Reseller.may_read());
        assert!(Role::OF_THE_HOUSE.into_iter().all(Role::may_read));
        assert_eq!(Role::ALL[..4], Role::OF_THE_HOUSE);
    }

    #[test]
    fn an_unknown_role_is_told_which_there_are() {
        let told = UnknownRole("root".to_owned()).to_string();
        for role in Role::ALL {
            assert!(told.contains(role.as_str()), "{told}");
        }
    }
}

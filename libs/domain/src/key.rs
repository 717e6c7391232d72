//! API keys: what they look like, what they may do, and the only form in which they are stored.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::named;

/// For how long services remember what they have read of a key, and so how long one that was revoked may still be accepted.
pub const REMEMBERED: Duration = Duration::from_secs(5);

/// What the holder of a key may do. A key has one role or several.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "lowercase")]
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
    /// Make links that open the dashboard of any reseller, and nothing else.
    Embedder,
    /// Look after the subscriptions of one reseller, and nothing of the house. Stands alone, and the key names the reseller.
    Reseller,
    /// Look at what one reseller has, bodies included and signing secrets not, and change nothing. Stands alone like [`Role::Reseller`].
    #[strum(serialize = "reseller-viewer")]
    #[serde(rename = "reseller-viewer")]
    ResellerViewer,
}

named!(Role, "role");

impl Role {
    /// The roles of the house: all but the resellers' own. They may be combined.
    pub const OF_THE_HOUSE: [Self; 5] = [
        Self::Ingest,
        Self::Viewer,
        Self::Operator,
        Self::Admin,
        Self::Embedder,
    ];

    /// Whether the role may hand in pushes and events.
    pub fn may_ingest(self) -> bool {
        matches!(self, Self::Ingest | Self::Admin)
    }

    /// Whether the role may read what became of any push or event. Every role of the house may but the embedder; a reseller sees its
    /// own notifications elsewhere.
    pub fn may_read(self) -> bool {
        !self.is_of_reseller() && self != Self::Embedder
    }

    /// Whether the role is one of a reseller, and none of the house.
    pub fn is_of_reseller(self) -> bool {
        matches!(self, Self::Reseller | Self::ResellerViewer)
    }

    /// Whether the role may look at the whole installation: dead letters, jobs, the record of what was done.
    pub fn may_view(self) -> bool {
        matches!(self, Self::Viewer | Self::Operator | Self::Admin)
    }

    /// Whether the role may mend the installation: replay, discard, pause, cancel.
    pub fn may_operate(self) -> bool {
        matches!(self, Self::Operator | Self::Admin)
    }
}

/// Whether a key of these roles can have a scope and a pace: those limit what is handed in, and a key that may do more would look limited and
/// not be. The database insists on the same.
pub fn can_be_limited(roles: &[Role]) -> bool {
    roles.iter().all(|role| *role == Role::Ingest)
}

/// Why a key cannot have these roles: a reseller's key is nothing else, so one of its two roles and its reseller come together and alone. The
/// database insists on the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleConflict {
    /// The role of a reseller without a reseller.
    WithoutReseller,
    /// A reseller without its role.
    WithoutRole,
    /// The role of a reseller beside another.
    NotAlone,
}

impl RoleConflict {
    /// What is wrong with a key of these roles, that is a reseller's or not.
    pub fn of(roles: &[Role], of_reseller: bool) -> Option<Self> {
        let own = roles.iter().find(|role| role.is_of_reseller());
        match (own, of_reseller) {
            (Some(_), false) => Some(Self::WithoutReseller),
            (None, true) => Some(Self::WithoutRole),
            (Some(own), true) if roles.iter().any(|role| role != own) => Some(Self::NotAlone),
            _ => None,
        }
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
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// The raw 32 bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Writes a key from 32 random bytes: `pr_` and 64 hexadecimal digits.
///
/// The prefix lets secret scanners find a key that leaked.
pub fn format_key(random: &[u8; 32]) -> String {
    format_token("pr_", random)
}

/// Writes what else shows who comes, such as a one-time link, from 32 random bytes: a prefix of its own, and 64 hexadecimal digits.
pub fn format_token(prefix: &str, random: &[u8; 32]) -> String {
    use fmt::Write as _;
    random.iter().fold(String::from(prefix), |mut token, byte| {
        write!(token, "{byte:02x}").expect("invariant: writing to a String cannot fail");
        token
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_its_kind_and_all_its_randomness() {
        let key = format_key(&[0xab; 32]);
        assert_eq!(key.len(), 3 + 64);
        assert!(key.starts_with("pr_abab"));
        assert_ne!(KeyDigest::of(&key), KeyDigest::of(&format_key(&[0xac; 32])));
    }

    #[test]
    fn only_a_key_that_hands_in_and_nothing_else_can_be_limited() {
        assert!(can_be_limited(&[Role::Ingest]));
        for roles in [
            &[Role::Admin][..],
            &[Role::Ingest, Role::Viewer],
            &[Role::Reseller],
        ] {
            assert!(!can_be_limited(roles), "{roles:?}");
        }
    }

    #[test]
    fn viewers_and_operators_cannot_hand_in_pushes() {
        assert!(Role::Ingest.may_ingest() && Role::Admin.may_ingest());
        assert!(!Role::Viewer.may_ingest() && !Role::Operator.may_ingest());
    }

    #[test]
    fn viewers_and_operators_may_look_and_neither_ingest_nor_resellers_may() {
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
    fn the_role_of_a_reseller_and_its_reseller_come_together_and_alone() {
        let both = [Role::Ingest, Role::Reseller];
        for (roles, of_reseller, conflict) in [
            (&both[..1], false, None),
            (&both[1..], true, None),
            (&both[1..], false, Some(RoleConflict::WithoutReseller)),
            (&both[..1], true, Some(RoleConflict::WithoutRole)),
            (&both[..], true, Some(RoleConflict::NotAlone)),
            (&[Role::ResellerViewer][..], true, None),
            (
                &[Role::ResellerViewer][..],
                false,
                Some(RoleConflict::WithoutReseller),
            ),
            (
                &[Role::Reseller, Role::ResellerViewer][..],
                true,
                Some(RoleConflict::NotAlone),
            ),
        ] {
            assert_eq!(RoleConflict::of(roles, of_reseller), conflict, "{roles:?}");
        }
    }

    #[test]
    fn resellers_may_nothing_of_what_the_house_may() {
        for role in [Role::Reseller, Role::ResellerViewer] {
            assert!(role.is_of_reseller() && !role.may_ingest() && !role.may_read() && !role.may_view());
        }
        assert!(Role::OF_THE_HOUSE[..4].iter().all(|role| role.may_read()));
        assert!(!Role::Embedder.may_read() && !Role::Embedder.may_view());
        assert_eq!(Role::ALL[..5], Role::OF_THE_HOUSE);
    }
}

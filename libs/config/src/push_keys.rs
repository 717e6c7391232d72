//! Which Swrve push key (transactional campaign) belongs to which message prototype, per platform.
//!
//! It deliberately holds no fallback: a prototype without a key is an error of the push, which the sender records.

use std::collections::BTreeMap;

use domain::push::Platform;

use crate::Secret;

/// The push keys by message prototype and platform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushKeys {
    by_prototype: BTreeMap<String, PrototypeKeys>,
}

/// The push keys of one message prototype.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PrototypeKeys {
    ios: Option<Secret>,
    android: Option<Secret>,
}

impl PushKeys {
    /// The push key for a push, or `None` when the push names no prototype, an unknown one, or one without a key for the platform.
    pub fn find(&self, prototype: Option<&str>, platform: Platform) -> Option<&str> {
        let keys = self.by_prototype.get(prototype?)?;
        let key = match platform {
            Platform::Ios => &keys.ios,
            Platform::Android => &keys.android,
        };
        key.as_ref().map(Secret::expose)
    }

    /// Sets one key, replacing an earlier one.
    pub fn insert(&mut self, prototype: impl Into<String>, platform: Platform, push_key: Secret) {
        let keys = self.by_prototype.entry(prototype.into()).or_default();
        match platform {
            Platform::Ios => keys.ios = Some(push_key),
            Platform::Android => keys.android = Some(push_key),
        }
    }

    /// How many message prototypes have at least one key.
    pub fn len(&self) -> usize {
        self.by_prototype.len()
    }

    /// Whether there is no key at all, so that no push can be sent.
    pub fn is_empty(&self) -> bool {
        self.by_prototype.is_empty()
    }
}

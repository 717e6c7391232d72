//! Broadcasts: names with versions that every client may follow. Pure; who asks for them is in `megaphone`.

use std::collections::HashMap;
use std::sync::Arc;

use crate::protocol::BroadcastsSaid;

/// What a client is told of a name that does not exist.
const NOT_FOUND: &str = "Broadcast not found";

/// The versions of all broadcasts, as last heard of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Broadcasts(HashMap<Arc<str>, Arc<str>>);

impl FromIterator<(String, String)> for Broadcasts {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(versions: T) -> Self {
        let versions = versions.into_iter();
        Self(
            versions
                .map(|(name, version)| (name.into(), version.into()))
                .collect(),
        )
    }
}

/// The broadcasts that one client follows, each with the version that it knows. Names and versions are shared by all clients.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Followed(Vec<(Arc<str>, Arc<str>)>);

impl Followed {
    /// Follows what a client names, with the versions that it knows; returns what it has to be told.
    pub(crate) fn follow(&mut self, named: &HashMap<String, String>, all: &Broadcasts) -> BroadcastsSaid {
        let mut said = BroadcastsSaid::default();
        for (name, known) in named {
            let Some((name, version)) = all.0.get_key_value(name.as_str()) else {
                said.errors.insert(name.clone(), NOT_FOUND);
                continue;
            };
            if **version != **known {
                said.versions.insert(name.to_string(), version.to_string());
            }
            match self.0.iter_mut().find(|(followed, _)| followed == name) {
                Some(followed) => followed.1 = Arc::clone(version),
                None => self.0.push((Arc::clone(name), Arc::clone(version))),
            }
        }
        said
    }

    /// What has changed since the client was last told.
    pub(crate) fn changes(&mut self, all: &Broadcasts) -> BroadcastsSaid {
        let mut said = BroadcastsSaid::default();
        for (name, known) in &mut self.0 {
            if let Some(version) = all.0.get(name)
                && version != known
            {
                said.versions.insert(name.to_string(), version.to_string());
                *known = Arc::clone(version);
            }
        }
        said
    }
}

//! The conditions under which a process can do its work, and the report `/readyz` gives of them.
//!
//! It deliberately does not probe anything: the part that knows (the broker's supervisor, the database pool's watcher) says so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

const STARTING: &str = "starting";

/// A registry of named conditions, shared by its clones. Without any condition it is ready.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    conditions: Arc<Mutex<BTreeMap<String, Option<String>>>>,
    /// What the names of this part begin with in the registry; empty for the whole.
    prefix: String,
}

impl Readiness {
    /// Registers a condition, which is not ready ("starting") until it says otherwise. A name registered before starts again.
    pub fn condition(&self, name: &'static str) -> Condition {
        let condition = Condition {
            name: format!("{}{name}", self.prefix),
            registry: self.clone(),
        };
        condition.not_ready(STARTING);
        condition
    }

    /// The part of the registry that belongs to one of several services in a process. Services that name a condition alike do not
    /// overwrite each other: `database` of the part `dispatcher` is `dispatcher.database` in the report of the whole. The part's own
    /// report shows only its own conditions, under their plain names.
    pub fn part(&self, name: &'static str) -> Self {
        Self {
            conditions: Arc::clone(&self.conditions),
            prefix: format!("{}{name}.", self.prefix),
        }
    }

    /// All conditions as they stand now.
    pub fn report(&self) -> Report {
        let conditions: BTreeMap<String, Option<String>> = self
            .lock()
            .iter()
            .filter_map(|(name, reason)| {
                let name = name.strip_prefix(&self.prefix)?;
                Some((name.to_owned(), reason.clone()))
            })
            .collect();
        Report {
            ready: conditions.values().all(Option::is_none),
            conditions,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        // A map of plain values cannot be left half-written by a panicking holder.
        self.conditions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to report one condition. Clones report the same one.
#[derive(Clone, Debug)]
pub struct Condition {
    name: String,
    registry: Readiness,
}

impl Condition {
    /// The condition holds.
    pub fn ready(&self) {
        self.registry.lock().insert(self.name.clone(), None);
    }

    /// The condition does not hold; the reason is shown to every caller of `/readyz`, so it must hold no secret.
    pub fn not_ready(&self, reason: impl Into<String>) {
        self.registry
            .lock()
            .insert(self.name.clone(), Some(reason.into()));
    }
}

/// The state of all conditions at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// True when every condition holds.
    pub ready: bool,
    /// Per condition: `None` when it holds, otherwise the reason why not.
    pub conditions: BTreeMap<String, Option<String>>,
}

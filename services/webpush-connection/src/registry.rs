//! Which client is connected here, and how to reach its connection.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use crate::connection::Close;
use crate::mailbox::Mailbox;

/// So many that two clients seldom wait for each other.
const SHARDS: usize = 64;

type Shard = HashMap<Uuid, Arc<Mailbox>>;

/// The clients that are connected to this node. A client has one connection: the last.
#[derive(Debug)]
pub(crate) struct Registry {
    shards: [Mutex<Shard>; SHARDS],
    is_closing: AtomicBool,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            is_closing: AtomicBool::new(false),
        }
    }
}

impl Registry {
    /// Enters a connection; returns the one before it.
    pub(crate) fn enter(&self, uaid: Uuid, mailbox: &Arc<Mailbox>) -> Option<Arc<Mailbox>> {
        let before = self.shard(uaid).insert(uaid, Arc::clone(mailbox));
        // Whatever is entered after the node began to stop was not seen by who told the others.
        if self.is_closing.load(Ordering::SeqCst) {
            mailbox.end(Close::GoingAway);
        }
        before
    }

    /// Takes back an [`Registry::enter`] and closes its mailbox: the connection before it has its place again if it lives.
    pub(crate) fn withdraw(&self, uaid: Uuid, mailbox: &Arc<Mailbox>, before: Option<Arc<Mailbox>>) {
        let mut shard = self.shard(uaid);
        // While the shard is held: one that is entered later and withdrawn in this moment must not give it the place back.
        mailbox.close();
        match shard.entry(uaid) {
            Entry::Occupied(mut entry) if Arc::ptr_eq(entry.get(), mailbox) => {
                // One that ends after this look leaves by itself.
                match before.filter(|before| !before.has_ended()) {
                    Some(before) => drop(entry.insert(before)),
                    None => drop(entry.remove()),
                }
            }
            // A later connection has the place and knows of this one alone: the one before would stay, and be reached by nothing.
            _ => {
                if let Some(before) = before {
                    before.end(Close::Replaced);
                }
            }
        }
    }

    /// Removes a connection, unless a later one has taken its place.
    pub(crate) fn leave(&self, uaid: Uuid, mailbox: &Arc<Mailbox>) {
        if let Entry::Occupied(entry) = self.shard(uaid).entry(uaid)
            && Arc::ptr_eq(entry.get(), mailbox)
        {
            entry.remove();
        }
    }

    /// The connection of a client.
    pub(crate) fn find(&self, uaid: Uuid) -> Option<Arc<Mailbox>> {
        self.shard(uaid).get(&uaid).cloned()
    }

    /// How many clients are connected.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Has every connection that is entered from now on end at once; returns those that were entered before.
    pub(crate) fn close(&self) -> Vec<Arc<Mailbox>> {
        self.is_closing.store(true, Ordering::SeqCst);
        self.all()
    }

    /// All connections.
    pub(crate) fn all(&self) -> Vec<Arc<Mailbox>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(lock(shard).values().cloned());
        }
        all
    }

    fn shard(&self, uaid: Uuid) -> MutexGuard<'_, Shard> {
        // The last byte of an identifier is random.
        lock(&self.shards[usize::from(uaid.as_bytes()[15]) % SHARDS])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // A map of plain values cannot be left half-written by a panicking holder.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_was_replaced_does_not_remove_the_later_one() {
        let registry = Registry::default();
        let (uaid, first, second) = (Uuid::new_v4(), Arc::default(), Arc::default());
        assert!(registry.enter(uaid, &first).is_none());
        assert!(registry.enter(uaid, &second).is_some());
        registry.leave(uaid, &first);
        assert!(
            registry
                .find(uaid)
                .is_some_and(|found| Arc::ptr_eq(&found, &second))
        );
        registry.leave(uaid, &second);
        assert_eq!(registry.len(), 0);
    }

    /// Two connections claim the identifier of a third at once, and neither gets it.
    #[test]
    fn a_connection_has_its_place_again_or_ends() {
        let uaid = Uuid::new_v4();
        let claimed = || {
            let registry = Registry::default();
            let [first, second, third]: [Arc<Mailbox>; 3] = Default::default();
            registry.enter(uaid, &first);
            let before_second = registry.enter(uaid, &second);
            let before_third = registry.enter(uaid, &third);
            (registry, first, (second, before_second), (third, before_third))
        };
        let (registry, first, second, third) = claimed();
        registry.withdraw(uaid, &third.0, third.1);
        registry.withdraw(uaid, &second.0, second.1);
        let found = registry.find(uaid);
        assert!(found.is_some_and(|found| Arc::ptr_eq(&found, &first)));
        assert!(!first.is_asked_to_end());

        let (registry, first, second, third) = claimed();
        registry.withdraw(uaid, &second.0, second.1);
        assert!(first.is_asked_to_end(), "nothing would reach it");
        registry.withdraw(uaid, &third.0, third.1);
        assert_eq!(registry.len(), 0, "the second one has ended");
    }
}

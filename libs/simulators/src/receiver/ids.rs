//! Tells identifiers apart in bounded memory, by their 64-bit hashes: among three million of them the chance that any two share a
//! hash is below one in a million.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

#[derive(Debug)]
pub(crate) struct Ids {
    seen: HashMap<u64, Seen>,
    hasher: RandomState,
    capacity: usize,
    /// Arrivals of an identifier that had arrived before.
    pub(crate) repeats: u64,
    /// Arrivals that were accepted although one of the same identifier had been accepted before.
    pub(crate) duplicates: u64,
    /// The capacity was reached: from then on no count is complete.
    pub(crate) saturated: bool,
}

#[derive(Debug, Default)]
struct Seen {
    arrivals: u32,
    accepted: bool,
}

impl Ids {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            seen: HashMap::new(),
            hasher: RandomState::new(),
            capacity,
            repeats: 0,
            duplicates: 0,
            saturated: false,
        }
    }

    /// Counts an arrival; returns how many there were of this identifier, this one included.
    pub(crate) fn arrive(&mut self, id: &str) -> u32 {
        let hash = self.hasher.hash_one(id);
        if let Some(seen) = self.seen.get_mut(&hash) {
            seen.arrivals = seen.arrivals.saturating_add(1);
            self.repeats += 1;
            return seen.arrivals;
        }
        if self.seen.len() < self.capacity {
            let seen = Seen {
                arrivals: 1,
                accepted: false,
            };
            self.seen.insert(hash, seen);
        } else {
            self.saturated = true;
        }
        1
    }

    /// Notes that an arrival was accepted.
    pub(crate) fn accept(&mut self, id: &str) {
        let hash = self.hasher.hash_one(id);
        if let Some(seen) = self.seen.get_mut(&hash) {
            self.duplicates += u64::from(seen.accepted);
            seen.accepted = true;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.seen.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_and_duplicates_are_told_apart() {
        let mut ids = Ids::new(10);
        assert_eq!([ids.arrive("a"), ids.arrive("b"), ids.arrive("a")], [1, 1, 2]);
        ids.accept("a");
        assert_eq!((ids.len(), ids.repeats, ids.duplicates), (2, 1, 0));
        ids.arrive("a");
        ids.accept("a");
        assert_eq!((ids.len(), ids.repeats, ids.duplicates), (2, 2, 1));
    }

    #[test]
    fn a_full_memory_grows_no_further_and_says_so() {
        let mut ids = Ids::new(1);
        ids.arrive("a");
        assert!(!ids.saturated);
        assert_eq!(ids.arrive("b"), 1);
        assert_eq!((ids.len(), ids.saturated, ids.arrive("a")), (1, true, 2));
    }
}

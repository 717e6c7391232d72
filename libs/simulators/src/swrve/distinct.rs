//! Counts distinct texts in bounded memory, by their 64-bit hashes: among three million texts the chance that any two
//! share a hash is below one in a million.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, RandomState};

#[derive(Debug)]
pub(crate) struct Distinct {
    hashes: HashSet<u64>,
    hasher: RandomState,
    capacity: usize,
    /// Texts that were seen before.
    pub(crate) repeats: u64,
    /// The capacity was reached: from then on neither count is complete.
    pub(crate) saturated: bool,
}

impl Distinct {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            hashes: HashSet::new(),
            hasher: RandomState::new(),
            capacity,
            repeats: 0,
            saturated: false,
        }
    }

    pub(crate) fn see(&mut self, text: impl Hash) {
        let hash = self.hasher.hash_one(text);
        if self.hashes.contains(&hash) {
            self.repeats += 1;
        } else if self.hashes.len() < self.capacity {
            self.hashes.insert(hash);
        } else {
            self.saturated = true;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_told_from_new_texts() {
        let mut distinct = Distinct::new(10);
        for text in [("a", "bc"), ("ab", "c"), ("a", "bc"), ("a", "bc")] {
            distinct.see(text);
        }
        assert_eq!(
            (distinct.len(), distinct.repeats, distinct.saturated),
            (2, 2, false)
        );
    }

    #[test]
    fn a_full_set_grows_no_further_and_says_so() {
        let mut distinct = Distinct::new(2);
        for text in ["a", "b", "c", "a"] {
            distinct.see(text);
        }
        assert_eq!(
            (distinct.len(), distinct.repeats, distinct.saturated),
            (2, 1, true)
        );
    }
}

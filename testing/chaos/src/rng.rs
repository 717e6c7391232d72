//! Chance that can be had again: the same seed gives the same numbers, in every release of every library. Not for secrets.

use std::time::Duration;

/// SplitMix64, which is a dozen lines and will never change.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// One whose numbers follow from `seed` alone.
    pub const fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// One for one of many things, independent of those for the others.
    pub fn for_number(seed: u64, number: u64) -> Self {
        Self(Self(seed ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93)).next())
    }

    /// Any number.
    #[expect(clippy::should_implement_trait, reason = "it is no iterator: it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// A time from `low` to `high` milliseconds.
    pub fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }

    /// An index below `length`, which must not be 0.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.next() % length as u64).expect("invariant: less than a length")
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.between(1, 100) <= percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_throws_for_ever() {
        let mut rng = Rng::from_seed(1);
        assert_eq!(
            [rng.next(), rng.next()],
            [10_451_216_379_200_822_465, 13_757_245_211_066_428_519]
        );
    }

    #[test]
    fn bounds_are_kept_and_reached() {
        let mut rng = Rng::from_seed(7);
        let numbers: Vec<u64> = (0..200).map(|_| rng.between(3, 6)).collect();
        assert!(numbers.iter().all(|number| (3..=6).contains(number)));
        assert!((3..=6).all(|number| numbers.contains(&number)));
    }
}

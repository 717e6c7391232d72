//! Which subscriptions a promoter leaves to the engines. One that gets a part of what waits for a subscription comes back for the rest,
//! and puts back into the database what is promoted of it meanwhile.
//!
//! It is kept in memory alone: the replica that takes the job over promotes something of each once more, which costs no more than that.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

/// How much longer each of them makes the time until the engines have come to all. Hundreds are back before the next run, as if they
/// had not been left at all; ten thousand are left for ten seconds.
const TURN: Duration = Duration::from_millis(1);
/// How long one is left at most: what an engine knows is gone with it, and a message may be lost.
const LONGEST: Duration = Duration::from_secs(20);
/// Those that a statement is told of: twice as many as it looks at, since some have nothing waiting any more.
const AT_ONCE: usize = 1_000;

/// When something of each was promoted last.
#[derive(Default)]
pub(crate) struct LeftToEngines(Mutex<BTreeMap<Uuid, Instant>>);

impl LeftToEngines {
    /// Those that are left to the engines at the moment, from the one after `after` on, in the order in which promoters look at subscriptions.
    pub(crate) fn beyond(&self, after: Option<Uuid>) -> Vec<Uuid> {
        let mut promoted = self.promoted();
        if after.is_none() {
            promoted.retain(|_, at| at.elapsed() < LONGEST);
        }
        let round = TURN.saturating_mul(u32::try_from(promoted.len()).unwrap_or(u32::MAX));
        let round = round.min(LONGEST);
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let left = promoted.range((from, Bound::Unbounded));
        let left = left.filter(|(_, at)| at.elapsed() < round);
        left.map(|(subscription, _)| *subscription)
            .take(AT_ONCE)
            .collect()
    }

    /// Notes those of which a part was promoted just now.
    pub(crate) fn note(&self, partly: impl IntoIterator<Item = Uuid>) {
        let now = Instant::now();
        let noted = partly.into_iter().map(|subscription| (subscription, now));
        self.promoted().extend(noted);
    }

    fn promoted(&self) -> MutexGuard<'_, BTreeMap<Uuid, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use tokio::time::advance;

    use super::*;

    fn ids(numbers: RangeInclusive<u128>) -> Vec<Uuid> {
        numbers.map(Uuid::from_u128).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn few_are_back_before_the_next_run() {
        let left = LeftToEngines::default();
        left.note(ids(1..=400));
        assert_eq!(left.beyond(None), ids(1..=400));
        advance(Duration::from_millis(400)).await;
        assert!(left.beyond(None).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn each_of_many_is_left_for_as_long_as_the_engines_take_for_all() {
        let left = LeftToEngines::default();
        left.note(ids(1..=5_000));
        advance(Duration::from_millis(4_999)).await;
        assert_eq!(left.beyond(None), ids(1..=1_000));
        assert_eq!(left.beyond(Some(Uuid::from_u128(4_990))), ids(4_991..=5_000));
        left.note(ids(4_995..=4_996));
        advance(Duration::from_millis(1)).await;
        assert_eq!(left.beyond(None), ids(4_995..=4_996));
    }

    #[tokio::test(start_paused = true)]
    async fn none_is_left_for_longer_than_the_longest_time_or_kept_after_it() {
        let left = LeftToEngines::default();
        left.note(ids(1..=50_000));
        advance(LONGEST).await;
        assert!(left.beyond(Some(Uuid::nil())).is_empty());
        assert!(left.beyond(None).is_empty());
        assert!(left.promoted().is_empty());
    }
}

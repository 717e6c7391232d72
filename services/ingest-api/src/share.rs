//! What one caller may have of the service at once, so that one that hands in more than can be stored is refused, and no other.
//!
//! It deliberately divides nothing up beforehand: a caller that is alone may use most of what there is, and the more callers hand in
//! more than can be stored, the less each of them may have waiting.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http_api::{Caller, Problem, ProblemKind};
use moka::future::Cache;
use tokio::sync::Semaphore;
use uuid::Uuid;

/// Callers whose shares are known at once.
const CALLERS: u64 = 10_000;
/// How long the share of a caller is known that hands nothing in, at the least: until its pace allows a whole batch again, and until its
/// last request is over.
const QUIET: Duration = Duration::from_secs(60);
/// So many rows may wait for a caller however little room there is: it is not one of those that fill it.
const FEW: usize = 64;

/// The shares of those that have handed something in lately.
pub(crate) struct Shares {
    of: Cache<Uuid, Arc<Share>>,
    batches: usize,
    burst: NonZeroU32,
}

/// What one caller has under way, whichever of its keys it shows.
pub(crate) struct Share {
    waiting: AtomicUsize,
    /// How many of its batches of events may be in memory at once, or wait for it among those of other callers: all but one, which is
    /// left to others.
    pub(crate) batches: Semaphore,
    pace: Option<(NonZeroU32, DefaultDirectRateLimiter)>,
}

/// The place of a row that waits for its commit, also when its caller waits for it no more.
pub(crate) struct Place(Arc<Share>);

impl Shares {
    /// Shares of a service with room for so many batches in memory, of so many events at most.
    pub(crate) fn new(batches: usize, batch_max: usize, request_timeout: Duration) -> Self {
        let burst = u32::try_from(batch_max).ok().and_then(NonZeroU32::new);
        // At one a second a whole batch takes as many seconds.
        let quiet = QUIET
            .max(Duration::from_secs(batch_max as u64))
            .max(request_timeout);
        Self {
            of: Cache::builder().max_capacity(CALLERS).time_to_idle(quiet).build(),
            batches,
            burst: burst.unwrap_or(NonZeroU32::MIN),
        }
    }

    /// The share of a caller.
    pub(crate) async fn of(&self, caller: &Caller) -> Result<Arc<Share>, Problem> {
        let making = async { Arc::new(Share::new(self.batches, self.burst, caller.per_second)) };
        Ok(self.of.get_with(caller.first_key()?, making).await)
    }
}

impl Share {
    pub(crate) fn new(batches: usize, burst: NonZeroU32, per_second: Option<NonZeroU32>) -> Self {
        // A whole batch at once has to be possible at any pace.
        let pace = |rate: NonZeroU32| {
            let quota = Quota::per_second(rate).allow_burst(rate.max(burst));
            (rate, RateLimiter::direct(quota))
        };
        Self {
            waiting: AtomicUsize::new(0),
            batches: Semaphore::new(batches.saturating_sub(1).max(1)),
            pace: per_second.map(pace),
        }
    }

    /// Lets one more row wait, when there is room for `free` more of all callers together; `None` when this caller has more than twice as many
    /// waiting already. So one caller leaves a third of the room to others, and each further one that hands in too much leaves less, but some.
    pub(crate) fn enter(self: &Arc<Self>, free: usize) -> Option<Place> {
        let mine = self.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(self));
        (mine < free.saturating_mul(2).max(FEW)).then_some(place)
    }

    /// Takes so many of what the caller may hand in within this second.
    ///
    /// # Errors
    ///
    /// A [`ProblemKind::TOO_MANY_REQUESTS`] that says when there is more.
    pub(crate) fn take(&self, count: usize) -> Result<(), Problem> {
        let Some((rate, limiter)) = &self.pace else {
            return Ok(());
        };
        let Some(count) = u32::try_from(count).ok().and_then(NonZeroU32::new) else {
            return Ok(());
        };
        let seconds = match limiter.check_n(count) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(until)) => until
                .wait_time_from(DefaultClock::default().now())
                .as_secs()
                .saturating_add(1),
            Err(_) => u64::from(count.get() / rate.get()) + 1,
        };
        let detail = format!("the API key may hand in {rate} a second, pushes and events together");
        let problem = Problem::new(ProblemKind::TOO_MANY_REQUESTS, detail);
        Err(problem.retry_after(u32::try_from(seconds).unwrap_or(u32::MAX)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(per_second: Option<u32>) -> Arc<Share> {
        let burst = NonZeroU32::new(5).unwrap();
        Arc::new(Share::new(4, burst, per_second.and_then(NonZeroU32::new)))
    }

    /// How many rows each of so many callers has waiting when all of them hand in as much as they may.
    fn filled(callers: usize, room: usize) -> Vec<usize> {
        let shares: Vec<_> = (0..callers).map(|_| share(None)).collect();
        let mut waiting: Vec<Vec<Place>> = shares.iter().map(|_| Vec::new()).collect();
        loop {
            let before: usize = waiting.iter().map(Vec::len).sum();
            for (share, waiting) in shares.iter().zip(&mut waiting) {
                let free =
                    room.saturating_sub(shares.iter().map(|one| one.waiting.load(Ordering::Relaxed)).sum());
                waiting.extend(share.enter(free));
            }
            if waiting.iter().map(Vec::len).sum::<usize>() == before {
                return waiting.iter().map(Vec::len).collect();
            }
        }
    }

    #[test]
    fn callers_that_hand_in_too_much_leave_room_for_the_next() {
        assert_eq!(filled(1, 1_000), [667]);
        for callers in [2, 3, 5] {
            let filled = filled(callers, 1_000);
            assert!(filled.iter().sum::<usize>() < 950, "{filled:?}");
            assert!(
                filled.iter().all(|mine| mine.abs_diff(filled[0]) <= 2),
                "{filled:?}"
            );
        }
    }

    #[test]
    fn who_has_little_waiting_is_told_of_the_room_and_not_of_its_share() {
        let share = share(None);
        let waiting: Vec<_> = (0..FEW).map(|_| share.enter(0)).collect();
        assert!(waiting.iter().all(Option::is_some));
        assert!(share.enter(0).is_none());
        drop(waiting);
        assert!(share.enter(0).is_some(), "what was refused does not count on");
    }

    #[test]
    fn a_pace_lets_a_batch_through_and_then_tells_when_there_is_more() {
        let share = share(Some(2));
        assert!(share.take(5).is_ok(), "a whole batch");
        let refused = share.take(1).unwrap_err();
        assert_eq!(refused.kind(), ProblemKind::TOO_MANY_REQUESTS);
        assert!(refused.detail().contains("2 a second"), "{}", refused.detail());
        assert!(share.take(0).is_ok());
        assert!(share.take(6).is_err(), "more than there ever is at once");
    }

    #[test]
    fn one_caller_leaves_a_place_for_the_batches_of_others() {
        let burst = NonZeroU32::MIN;
        for (places, own) in [(1, 1), (2, 1), (4, 3)] {
            let share = Share::new(places, burst, None);
            assert_eq!(share.batches.available_permits(), own, "{places}");
        }
    }

    #[tokio::test]
    async fn a_pace_is_remembered_until_it_allows_a_whole_batch_again() {
        let idle = |batch_max, seconds| {
            let shares = Shares::new(4, batch_max, Duration::from_secs(seconds));
            shares.of.policy().time_to_idle().map(|idle| idle.as_secs())
        };
        assert_eq!(idle(10, 5), Some(60));
        assert_eq!(idle(1_000, 5), Some(1_000));
        assert_eq!(idle(10, 600), Some(600));
    }

    #[test]
    fn without_a_pace_nothing_is_counted() {
        assert!(share(None).take(1_000_000).is_ok());
    }
}

//! What one caller may have of the service at once, so that one that hands in more than can be stored is refused, and no other.
//!
//! It deliberately divides nothing up beforehand: a caller that is alone may use most of what there is, and the more callers hand in
//! more than can be stored, the less each of them may have waiting.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_api::{Caller, Problem, ProblemKind};
use moka::future::Cache;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use uuid::Uuid;

/// Callers whose shares are known at once.
const CALLERS: u64 = 10_000;
/// How long the share of a caller is known that hands nothing in, at the least: until a whole batch is made up for at its pace, and until
/// its last request is over.
const QUIET: Duration = Duration::from_secs(60);
/// So many rows may wait for a caller however little room there is: it is not one of those that fill it.
const FEW: usize = 64;

/// The shares of those that have handed something in lately.
pub(crate) struct Shares {
    of: Cache<Uuid, Arc<Share>>,
    batches: usize,
}

/// What one caller has under way, whichever of its keys it shows.
pub(crate) struct Share {
    waiting: AtomicUsize,
    /// How many of its batches of events may be in memory at once, or wait for it among those of other callers: all but one, which is
    /// left to others.
    pub(crate) batches: Semaphore,
    pace: Option<Pace>,
}

/// How many a second a caller may hand in. At once it may hand in what is allowed in one second, and a batch of more once all of that is
/// there; such a batch has to be made up for before there is more. So a batch is possible at any pace, and single ones do not gather to as many.
struct Pace {
    per_second: NonZeroU32,
    /// When all that was taken is made up for; later than a second from now after a batch of more than a second's worth.
    made_up_at: Mutex<Option<Instant>>,
}

/// The place of a row that waits for its commit, also when its caller waits for it no more.
pub(crate) struct Place(Arc<Share>);

impl Shares {
    /// Shares of a service with room for so many batches in memory, of so many events at most.
    pub(crate) fn new(batches: usize, batch_max: usize, request_timeout: Duration) -> Self {
        // At one a second a whole batch takes as many seconds.
        let quiet = QUIET
            .max(Duration::from_secs(batch_max as u64))
            .max(request_timeout);
        Self {
            of: Cache::builder().max_capacity(CALLERS).time_to_idle(quiet).build(),
            batches,
        }
    }

    /// The share of a caller.
    pub(crate) async fn of(&self, caller: &Caller) -> Result<Arc<Share>, Problem> {
        let making = async { Arc::new(Share::new(self.batches, caller.per_second)) };
        Ok(self.of.get_with(caller.first_key()?, making).await)
    }
}

impl Share {
    pub(crate) fn new(batches: usize, per_second: Option<NonZeroU32>) -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            batches: Semaphore::new(batches.saturating_sub(1).max(1)),
            pace: per_second.map(Pace::new),
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
        let Some(pace) = &self.pace else {
            return Ok(());
        };
        pace.take(count, Instant::now()).map_err(|wait| {
            let detail = format!(
                "the API key may hand in {} a second, pushes and events together",
                pace.per_second
            );
            // Whole seconds, none of them too early.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            let problem = Problem::new(ProblemKind::TOO_MANY_REQUESTS, detail);
            problem.retry_after(u32::try_from(seconds).unwrap_or(u32::MAX))
        })
    }

    /// Gives back what was taken for what could not be stored.
    pub(crate) fn give_back(&self, count: usize) {
        if let Some(pace) = &self.pace {
            pace.give_back(count);
        }
    }
}

impl Pace {
    fn new(per_second: NonZeroU32) -> Self {
        Self {
            per_second,
            made_up_at: Mutex::new(None),
        }
    }

    /// Takes so many at `now`, or says in how much time they could be taken if no others were before.
    fn take(&self, count: usize, now: Instant) -> Result<(), Duration> {
        let second = self.per_second.get() as usize;
        let mut made_up_at = self.made_up_at.lock().unwrap_or_else(PoisonError::into_inner);
        let from = made_up_at.map_or(now, |at| at.max(now));
        // Of a batch that is larger, only a second's worth has to be there.
        let wait =
            (from + self.time_of(count.min(second))).saturating_duration_since(now + Duration::from_secs(1));
        if !wait.is_zero() {
            return Err(wait);
        }
        *made_up_at = Some(from + self.time_of(count));
        Ok(())
    }

    fn give_back(&self, count: usize) {
        let mut made_up_at = self.made_up_at.lock().unwrap_or_else(PoisonError::into_inner);
        *made_up_at = made_up_at.and_then(|at| at.checked_sub(self.time_of(count)));
    }

    /// In how much time so many are made up for. Rounded down, so that as many as in a second take no longer than one.
    fn time_of(&self, count: usize) -> Duration {
        Duration::from_nanos((count as u64).saturating_mul(1_000_000_000) / u64::from(self.per_second.get()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;

    use super::*;

    fn share(per_second: Option<u32>) -> Arc<Share> {
        Arc::new(Share::new(4, per_second.and_then(NonZeroU32::new)))
    }

    fn pace(per_second: u32) -> Pace {
        Pace::new(NonZeroU32::new(per_second).unwrap())
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

    #[tokio::test(start_paused = true)]
    async fn a_pace_tells_in_whole_seconds_when_there_is_more() {
        let share = share(Some(2));
        assert!(share.take(7).is_ok(), "a batch of more than a second's worth");
        let refused = share.take(1).unwrap_err();
        assert_eq!(refused.kind(), ProblemKind::TOO_MANY_REQUESTS);
        assert!(refused.detail().contains("2 a second"), "{}", refused.detail());
        assert_eq!(refused.into_response().headers()["retry-after"], "3");
        tokio::time::advance(Duration::from_millis(3_000)).await;
        assert!(share.take(1).is_ok());
        tokio::time::advance(Duration::from_millis(200)).await;
        let refused = share.take(1).unwrap_err();
        assert_eq!(refused.into_response().headers()["retry-after"], "1");
    }

    #[test]
    fn a_key_that_rested_hands_in_a_seconds_worth_at_once_and_not_a_batch_of_single_ones() {
        let start = Instant::now();
        for per_second in [1, 3, 5, 7, 1_000] {
            let pace = pace(per_second);
            let now = start + Duration::from_secs(3_600);
            let taken = (0..10_000).take_while(|_| pace.take(1, now).is_ok()).count();
            assert_eq!(taken, per_second as usize, "{per_second}");
        }
    }

    #[test]
    fn a_batch_is_owed_and_the_wait_that_is_told_is_true() {
        let pace = pace(5);
        let start = Instant::now();
        assert_eq!(pace.take(1_000, start), Ok(()));
        for (count, millis) in [(1, 199_200), (5, 200_000), (1_000, 200_000)] {
            let wait = pace.take(count, start).unwrap_err();
            assert_eq!(wait, Duration::from_millis(millis), "{count}");
            let early = start + wait - Duration::from_millis(1);
            assert!(pace.take(count, early).is_err(), "{count}");
        }
        let later = start + Duration::from_millis(199_200);
        assert_eq!(pace.take(1, later), Ok(()));
        assert_eq!(pace.take(1, later), Err(Duration::from_millis(200)));
        assert!(
            pace.take(6, later + Duration::from_millis(900)).is_err(),
            "a batch of more than a second's worth waits until a second's worth is there"
        );
        assert_eq!(pace.take(6, later + Duration::from_secs(1)), Ok(()));
    }

    #[test]
    fn a_batch_that_is_given_back_is_not_owed() {
        let pace = pace(5);
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(pace.take(1_000, start), Ok(()));
            assert!(pace.take(1, start).is_err());
            pace.give_back(1_000);
        }
        let later = start + Duration::from_secs(60);
        let taken = (0..100).take_while(|_| pace.take(1, later).is_ok()).count();
        assert_eq!(taken, 5, "nothing is gained by it");
    }

    #[test]
    fn no_window_of_time_admits_more_than_the_rate_a_second_and_one_batch() {
        const BATCH: usize = 50;
        for per_second in [1, 5, 40, 200] {
            let pace = pace(per_second);
            let start = Instant::now();
            // A caller that tries single ones and batches at odd times, and rests now and then.
            let (mut millis, mut step, mut admitted) = (0_u64, 7_u64, Vec::new());
            for _ in 0..3_000 {
                step = (step * 1_103_515_245 + 12_345) % 2_147_483_648;
                millis += if step.is_multiple_of(97) {
                    20_000
                } else {
                    step / 64 % 60
                };
                let count = if (step / 4_096).is_multiple_of(10) {
                    BATCH
                } else {
                    1
                };
                if pace.take(count, start + Duration::from_millis(millis)).is_ok() {
                    admitted.push((millis, count));
                }
            }
            assert!(admitted.iter().any(|(_, count)| *count == BATCH), "{per_second}");
            assert!(admitted.iter().any(|(_, count)| *count == 1), "{per_second}");
            for (first, (from, _)) in admitted.iter().enumerate() {
                let mut sum = 0;
                for (at, count) in &admitted[first..] {
                    sum += count;
                    let most =
                        (at - from) as usize * per_second as usize / 1_000 + per_second as usize + BATCH;
                    assert!(sum <= most, "{per_second} a second: {sum} from {from} to {at}");
                }
            }
        }
    }

    #[test]
    fn one_caller_leaves_a_place_for_the_batches_of_others() {
        for (places, own) in [(1, 1), (2, 1), (4, 3)] {
            let share = Share::new(places, None);
            assert_eq!(share.batches.available_permits(), own, "{places}");
        }
    }

    #[tokio::test]
    async fn a_pace_is_remembered_until_a_whole_batch_is_made_up_for() {
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

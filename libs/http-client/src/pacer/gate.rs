//! Decides whether a send may start now. Pure, apart from the clock it is given; it never waits.
//!
//! `governor` is the limiter. Its decision alone is not enough: a thread that is preempted between the decision and the
//! start would begin late, and the next one, decided on time, too close to it. So the gate also measures each start and
//! refuses the next until the delay has passed from there.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use super::SendStart;

/// A longer lag raises the usual one by this part of the difference.
const LAG_RISE: u32 = 64;
/// Lags up to this part of the delay are followed.
const LONGEST_LAG: u32 = 4;

#[derive(Debug)]
pub(super) struct Gate<C: Clock<Instant = Instant>> {
    limiter: RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<Instant>>,
    clock: C,
    delay: Duration,
    /// No start before this; it only ever moves forward.
    not_before: Option<Instant>,
    last_start: Option<Instant>,
    /// The limiter has said yes and no start has used that up yet.
    admitted: bool,
    /// How much later than its start a send is handed over at least.
    usual_lag: Option<Duration>,
}

impl<C: Clock<Instant = Instant> + Clone> Gate<C> {
    /// `None` for a zero delay.
    pub(super) fn new(delay: Duration, clock: C) -> Option<Self> {
        let quota = Quota::with_period(delay)?.allow_burst(NonZeroU32::MIN);
        Some(Self {
            limiter: RateLimiter::direct_with_clock(quota, clock.clone()),
            clock,
            delay,
            not_before: None,
            last_start: None,
            admitted: false,
            usual_lag: None,
        })
    }

    /// Whether a send may start now; if not, when it is worth asking again.
    pub(super) fn admit(&mut self) -> Result<(), Instant> {
        if let Some(not_before) = self.not_before
            && self.clock.now() < not_before
        {
            return Err(not_before);
        }
        if !self.admitted {
            self.limiter
                .check()
                .map_err(|not_until| not_until.earliest_possible())?;
            self.admitted = true;
        }
        Ok(())
    }

    /// Stamps the start that [`admit`](Self::admit) has allowed.
    pub(super) fn start(&mut self) -> SendStart {
        let at = self.clock.now();
        self.admitted = false;
        self.forbid_before(at + self.delay);
        let gap = self.last_start.replace(at).map(|last| at.duration_since(last));
        SendStart { at, gap }
    }

    pub(super) fn hold(&mut self, handed_over: Instant) {
        self.forbid_before(handed_over + self.delay);
    }

    /// Lets the next send be handed over no sooner than the delay after `handed_over`, given that it will lag behind its
    /// start by the usual time as well: only what this lag was longer than usual is added.
    pub(super) fn follow(&mut self, handed_over: Instant) {
        let Some(last_start) = self.last_start else { return };
        let lag = handed_over.saturating_duration_since(last_start);
        // Falls to the least at once and rises slowly, so that it stays below nearly every lag.
        let usual = self
            .usual_lag
            .map_or(lag, |usual| lag.min(usual + lag.saturating_sub(usual) / LAG_RISE));
        self.usual_lag = Some(usual);
        if lag <= self.delay / LONGEST_LAG {
            self.forbid_before(last_start + self.delay + (lag - usual));
        }
    }

    pub(super) fn forbid_before(&mut self, instant: Instant) {
        self.not_before = self.not_before.max(Some(instant));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const DELAY: Duration = Duration::from_millis(4);
    const NANO: Duration = Duration::from_nanos(1);

    #[derive(Clone)]
    struct ManualClock(Arc<Mutex<Instant>>);

    impl ManualClock {
        fn advance(&self, by: Duration) {
            *self.0.lock().unwrap() += by;
        }
    }

    impl Clock for ManualClock {
        type Instant = Instant;

        fn now(&self) -> Instant {
            *self.0.lock().unwrap()
        }
    }

    fn gate() -> (Gate<ManualClock>, ManualClock) {
        let clock = ManualClock(Arc::new(Mutex::new(Instant::now())));
        (Gate::new(DELAY, clock.clone()).unwrap(), clock)
    }

    #[test]
    fn the_second_start_is_refused_until_the_last_nanosecond_of_the_delay() {
        let (mut gate, clock) = gate();
        assert_eq!(gate.admit(), Ok(()));
        let first = gate.start();
        assert_eq!(first.gap, None);
        assert_eq!(gate.admit(), Err(first.at + DELAY));
        clock.advance(DELAY - NANO);
        assert_eq!(gate.admit(), Err(first.at + DELAY));
        clock.advance(NANO);
        assert_eq!(gate.admit(), Ok(()));
        assert_eq!(gate.start().gap, Some(DELAY));
    }

    #[test]
    fn a_thread_preempted_after_the_decision_moves_the_next_start_too() {
        let (mut gate, clock) = gate();
        assert_eq!(gate.admit(), Ok(()));
        clock.advance(Duration::from_millis(3));
        let late = gate.start();
        clock.advance(Duration::from_millis(1));
        assert_eq!(
            gate.admit(),
            Err(late.at + DELAY),
            "4 ms after the decision, 1 ms after the start"
        );
        clock.advance(Duration::from_millis(3));
        assert_eq!(gate.admit(), Ok(()));
    }

    #[test]
    fn idleness_saves_up_no_burst() {
        let (mut gate, clock) = gate();
        assert_eq!(gate.admit(), Ok(()));
        gate.start();
        clock.advance(Duration::from_secs(3600));
        assert_eq!(gate.admit(), Ok(()));
        let start = gate.start();
        assert_eq!(gate.admit(), Err(start.at + DELAY));
    }

    #[test]
    fn an_unused_admission_is_kept_but_is_still_only_one() {
        let (mut gate, clock) = gate();
        assert_eq!(gate.admit(), Ok(()));
        assert_eq!(gate.admit(), Ok(()));
        clock.advance(DELAY * 10);
        assert_eq!(gate.admit(), Ok(()));
        let start = gate.start();
        assert_eq!(gate.admit(), Err(start.at + DELAY));
    }

    #[test]
    fn a_hold_keeps_the_delay_from_the_hand_over() {
        let (mut gate, clock) = gate();
        assert_eq!(gate.admit(), Ok(()));
        let start = gate.start();
        clock.advance(DELAY);
        gate.hold(start.at + Duration::from_millis(1));
        assert_eq!(gate.admit(), Err(start.at + Duration::from_millis(5)));
        gate.hold(start.at);
        assert_eq!(
            gate.admit(),
            Err(start.at + Duration::from_millis(5)),
            "a hold never moves it back"
        );
    }

    /// One send whose hand-over lags behind its start; returns how long after the start the next is allowed.
    fn allowed_after(gate: &mut Gate<ManualClock>, clock: &ManualClock, lag: Duration) -> Duration {
        assert_eq!(gate.admit(), Ok(()));
        let start = gate.start();
        gate.follow(start.at + lag);
        let allowed = gate.admit().unwrap_err() - start.at;
        clock.advance(allowed);
        allowed
    }

    #[test]
    fn a_hand_over_later_than_usual_moves_the_next_start_by_the_difference() {
        let (mut gate, clock) = gate();
        let micros = Duration::from_micros;
        assert_eq!(
            allowed_after(&mut gate, &clock, micros(50)),
            DELAY,
            "the first is the usual"
        );
        assert_eq!(allowed_after(&mut gate, &clock, micros(50)), DELAY);
        assert_eq!(
            allowed_after(&mut gate, &clock, micros(114)),
            DELAY + micros(63),
            "the usual rises by 1 of 64"
        );
        assert_eq!(
            allowed_after(&mut gate, &clock, micros(20)),
            DELAY,
            "never less than the delay"
        );
        assert_eq!(
            allowed_after(&mut gate, &clock, micros(84)),
            DELAY + micros(63),
            "the usual fell at once"
        );
    }

    #[test]
    fn a_hand_over_that_is_much_too_late_is_not_followed() {
        let (mut gate, clock) = gate();
        assert_eq!(allowed_after(&mut gate, &clock, Duration::ZERO), DELAY);
        assert!(allowed_after(&mut gate, &clock, DELAY / 4) > DELAY);
        assert_eq!(allowed_after(&mut gate, &clock, DELAY / 4 + NANO), DELAY);
    }

    #[test]
    fn a_hand_over_before_any_start_means_nothing() {
        let (mut gate, clock) = gate();
        gate.follow(clock.now() + DELAY);
        assert_eq!(gate.admit(), Ok(()));
    }

    #[test]
    fn nothing_starts_before_the_forbidden_time_has_passed() {
        let (mut gate, clock) = gate();
        let end = clock.now() + Duration::from_secs(3);
        gate.forbid_before(end);
        assert_eq!(gate.admit(), Err(end));
        clock.advance(Duration::from_secs(3) - NANO);
        assert_eq!(gate.admit(), Err(end));
        clock.advance(NANO);
        assert_eq!(gate.admit(), Ok(()));
    }

    #[test]
    fn a_zero_delay_makes_no_gate() {
        assert!(Gate::new(Duration::ZERO, governor::clock::MonotonicClock).is_none());
    }
}

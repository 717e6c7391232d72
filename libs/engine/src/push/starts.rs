//! Tells of each send, at the last moment before its bytes are written, when it started: a line of the log at `trace`, for
//! a test that proves the pace over several processes. Off unless the filter asks for `dispatcher::starts=trace`.
//!
//! The times are those of the host's monotonic clock, which all of its processes share. A line is written before its send,
//! so that a process killed at any moment has told of everything that it has sent.

use std::time::{Duration, Instant};

use domain::push::PushId;
use rustix::time::{ClockId, clock_gettime};

/// Readings of both clocks; the two that lie closest together tell how far the clocks are apart.
const READINGS: usize = 100;

/// What turns an [`Instant`] into nanoseconds that other processes understand.
#[derive(Debug, Clone)]
pub(crate) struct Starts {
    epoch: i64,
    base: Instant,
    base_nanos: u64,
}

impl Starts {
    /// For the sends of one term.
    pub(crate) fn new(epoch: i64) -> Self {
        let reading = || {
            let before = Instant::now();
            (clock_nanos(), before, before.elapsed())
        };
        let (base_nanos, base, _) =
            (1..READINGS).map(|_| reading()).fold(
                reading(),
                |best, other| if other.2 < best.2 { other } else { best },
            );
        Self {
            epoch,
            base,
            base_nanos,
        }
    }

    /// The send that started then is being handed over to its connection.
    pub(crate) fn tell(&self, push: PushId, start: Instant) {
        tracing::trace!(
            epoch = self.epoch,
            push.id = %push,
            started = self.nanos(start),
            handed_over = self.nanos(Instant::now()),
            "send"
        );
    }

    fn nanos(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.base);
        self.base_nanos + u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

fn clock_nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = Duration::from_secs(now.tv_sec.unsigned_abs());
    let nanos = seconds.as_nanos() + u128::from(now.tv_nsec.unsigned_abs());
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_terms_of_one_host_call_the_same_moment_by_the_same_name() {
        let one = Starts::new(1);
        std::thread::yield_now();
        let other = Starts::new(2);
        let moment = Instant::now();
        let apart = one.nanos(moment).abs_diff(other.nanos(moment));
        assert!(apart < 1_000_000, "they are {apart} ns apart");
        assert_eq!(
            one.nanos(moment + Duration::from_millis(4)) - one.nanos(moment),
            4_000_000
        );
    }
}

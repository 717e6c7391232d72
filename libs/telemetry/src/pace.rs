//! The sends of the push lane by the second, for two minutes: how many, the smallest gap between two starts, and how many were in flight.
//!
//! Metrics are added up over time, and tell of no single second. This is kept by the process that sends, and handed out with what it reports of
//! itself, so that nothing has to collect metrics to see the pace.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How many seconds are kept.
pub const SECONDS: i64 = 120;

/// A second in which something was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Second {
    /// Its beginning, in seconds since 1970, by the clock of the host.
    pub at: i64,
    /// How many sends were started in it.
    pub sends: u32,
    /// The smallest gap between the start of one of them and the start before.
    pub smallest_gap: Option<Duration>,
    /// Most sends that were in flight when one was started.
    pub in_flight: u32,
}

static PACE: Mutex<VecDeque<Second>> = Mutex::new(VecDeque::new());

/// Notes a send that was started at `at`, a time in seconds since 1970.
pub fn note(at: i64, gap: Option<Duration>, in_flight: u32) {
    let mut kept = PACE.lock().unwrap_or_else(PoisonError::into_inner);
    add(&mut kept, at, gap, in_flight);
}

/// The seconds of the last two minutes before `now` in which something was sent, the oldest first.
pub fn of_late(now: i64) -> Vec<Second> {
    let kept = PACE.lock().unwrap_or_else(PoisonError::into_inner);
    let of_late = kept.iter().filter(|second| second.at > now - SECONDS);
    of_late.copied().collect()
}

fn add(kept: &mut VecDeque<Second>, at: i64, gap: Option<Duration>, in_flight: u32) {
    while kept.front().is_some_and(|second| second.at <= at - SECONDS) {
        kept.pop_front();
    }
    // A clock that is turned back would otherwise keep seconds twice: what is counted meanwhile counts for the last one.
    if kept.back().is_none_or(|second| second.at < at) {
        kept.push_back(Second {
            at,
            sends: 0,
            smallest_gap: None,
            in_flight: 0,
        });
    }
    if let Some(second) = kept.back_mut() {
        second.sends = second.sends.saturating_add(1);
        second.smallest_gap = second.smallest_gap.into_iter().chain(gap).min();
        second.in_flight = second.in_flight.max(in_flight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_are_counted_by_the_second_for_two_minutes() {
        let mut kept = VecDeque::new();
        let millis = Duration::from_millis;
        add(&mut kept, 1_000, None, 0);
        add(&mut kept, 1_000, Some(millis(5)), 3);
        add(&mut kept, 1_000, Some(millis(4)), 2);
        let first = Second {
            at: 1_000,
            sends: 3,
            smallest_gap: Some(millis(4)),
            in_flight: 3,
        };
        assert_eq!(kept, [first]);
        // Turned back.
        add(&mut kept, 999, Some(millis(6)), 1);
        assert_eq!((kept.len(), kept[0].sends), (1, 4));
        add(&mut kept, 1_000 + SECONDS - 1, Some(millis(4)), 1);
        assert_eq!(kept.len(), 2);
        add(&mut kept, 1_000 + SECONDS, Some(millis(4)), 1);
        assert_eq!(kept.len(), 2, "the first one is two minutes old");
    }
}

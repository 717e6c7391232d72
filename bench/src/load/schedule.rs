//! Due times at even distances. Pure: it is told the time.

use std::time::{Duration, Instant};

/// When the requests of an open loop are due.
#[derive(Debug)]
pub(crate) struct Schedule {
    start: Instant,
    rate: u32,
    /// How many requests there are in all.
    total: u64,
    next: u64,
}

impl Schedule {
    /// `rate` requests a second for `length` from `start` on.
    pub(crate) fn new(start: Instant, rate: u32, length: Duration) -> Self {
        Self {
            start,
            rate,
            total: (length.as_secs_f64() * f64::from(rate)).round() as u64,
            next: 0,
        }
    }

    /// The due time of the next request that is due at `now`.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Instant> {
        let at = self.at(self.next);
        if self.is_over() || at > now {
            return None;
        }
        self.next += 1;
        Some(at)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.next >= self.total
    }

    /// From the start in one step, so that no rounding adds up.
    fn at(&self, index: u64) -> Instant {
        self.start + Duration::from_secs_f64(index as f64 / f64::from(self.rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_at_even_distances_and_none_is_left_out_by_a_late_look() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, 4, Duration::from_secs(1));
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(schedule.due(start), Some(start));
        assert_eq!(schedule.due(at(249)), None);
        assert_eq!(schedule.due(at(600)), Some(at(250)));
        assert_eq!(schedule.due(at(600)), Some(at(500)));
        assert_eq!(schedule.due(at(600)), None);
        assert!(!schedule.is_over());
        assert_eq!(schedule.due(at(5_000)), Some(at(750)));
        assert_eq!(schedule.due(at(5_000)), None);
        assert!(schedule.is_over());
    }
}

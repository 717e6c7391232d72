//! The distances between arrivals and the number of them in any second. Pure: it is told each time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// What the sequence of arrival times says. Arrivals must be told in the order of their times.
#[derive(Debug)]
pub(crate) struct Pace {
    short_gap: Duration,
    pub(crate) count: u64,
    pub(crate) first: Option<Instant>,
    last: Option<Instant>,
    pub(crate) smallest_gap: Option<Duration>,
    /// How many gaps were below `short_gap`.
    pub(crate) short_gaps: u64,
    /// The arrivals of the last second.
    window: VecDeque<Instant>,
    pub(crate) max_in_any_second: usize,
}

impl Pace {
    pub(crate) fn new(short_gap: Duration) -> Self {
        Self {
            short_gap,
            count: 0,
            first: None,
            last: None,
            smallest_gap: None,
            short_gaps: 0,
            window: VecDeque::new(),
            max_in_any_second: 0,
        }
    }

    /// Notes an arrival; returns how many there were within the second that ends with it, itself included.
    pub(crate) fn arrive(&mut self, at: Instant) -> usize {
        self.count += 1;
        self.first.get_or_insert(at);
        if let Some(last) = self.last.replace(at) {
            let gap = at.duration_since(last);
            self.smallest_gap = Some(self.smallest_gap.map_or(gap, |smallest| smallest.min(gap)));
            self.short_gaps += u64::from(gap < self.short_gap);
        }
        while self
            .window
            .front()
            .is_some_and(|oldest| at.duration_since(*oldest) >= SECOND)
        {
            self.window.pop_front();
        }
        self.window.push_back(at);
        self.max_in_any_second = self.max_in_any_second.max(self.window.len());
        self.window.len()
    }

    /// From the first to the last arrival.
    pub(crate) fn span(&self) -> Duration {
        match (self.first, self.last) {
            (Some(first), Some(last)) => last.duration_since(first),
            _ => Duration::ZERO,
        }
    }

    /// Arrivals per second over the span; `None` before the second arrival.
    pub(crate) fn rate(&self) -> Option<f64> {
        let seconds = self.span().as_secs_f64();
        (seconds > 0.0).then(|| (self.count - 1) as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace_of(offsets_micros: &[u64]) -> (Pace, Vec<usize>) {
        let start = Instant::now();
        let mut pace = Pace::new(Duration::from_millis(4));
        let in_second = offsets_micros
            .iter()
            .map(|offset| pace.arrive(start + Duration::from_micros(*offset)))
            .collect();
        (pace, in_second)
    }

    #[test]
    fn gaps_are_measured_and_the_short_ones_counted() {
        let (pace, _) = pace_of(&[0, 4_000, 7_999, 20_000, 23_000]);
        assert_eq!(pace.smallest_gap, Some(Duration::from_micros(3_000)));
        assert_eq!((pace.count, pace.short_gaps), (5, 2));
    }

    #[test]
    fn the_window_holds_the_arrivals_of_less_than_a_second_ago() {
        let (pace, in_second) = pace_of(&[0, 500_000, 999_999, 1_000_000, 1_500_000, 5_000_000]);
        assert_eq!(in_second, [1, 2, 3, 3, 3, 1]);
        assert_eq!(pace.max_in_any_second, 3);
    }

    #[test]
    fn the_rate_is_over_the_gaps_and_not_the_arrivals() {
        let (pace, _) = pace_of(&[0, 500_000, 1_000_000]);
        assert_eq!(pace.rate(), Some(2.0));
        assert_eq!(pace_of(&[7]).0.rate(), None);
        assert_eq!(pace_of(&[]).0.rate(), None);
    }
}

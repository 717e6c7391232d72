//! What became of the pushes of one load.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// Longest time that is told apart, in microseconds.
const LONGEST: u64 = 120_000_000;

/// Counts and times of the measured part.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Answers with 202.
    pub(crate) accepted: u64,
    /// Other answers, by status.
    pub(crate) refused: BTreeMap<u16, u64>,
    /// Requests without an answer.
    pub(crate) broken: u64,
    /// Requests that were given up before a connection was free for them.
    pub(crate) unsent: u64,
    /// Answers with 202 that came within the measured part, whenever their requests were due.
    pub(crate) answered: u64,
    /// Length of the measured part.
    pub(crate) span: Duration,
    /// Accepted pushes outside of the measured part.
    pub(crate) accepted_unmeasured: u64,
    micros: Histogram<u64>,
}

/// The part of a load that counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
}

impl Window {
    pub(crate) fn holds(&self, at: Instant) -> bool {
        self.from <= at && at < self.to
    }
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            accepted: 0,
            refused: BTreeMap::new(),
            broken: 0,
            unsent: 0,
            answered: 0,
            span: Duration::ZERO,
            accepted_unmeasured: 0,
            micros: Histogram::new_with_bounds(1, LONGEST, 3).expect("invariant: the bounds are in order"),
        }
    }

    /// Counts a request that began, or was due, at `from` and has ended now.
    pub(crate) fn measured(&mut self, from: Instant, outcome: &io::Result<u16>) {
        match outcome {
            Ok(202) => {
                self.accepted += 1;
                self.record(from);
            }
            Ok(status) => *self.refused.entry(*status).or_default() += 1,
            Err(_) => self.broken += 1,
        }
    }

    /// Counts a request of an open loop that was due at `due` and has ended now.
    pub(crate) fn settled(&mut self, window: Window, due: Instant, outcome: &io::Result<u16>) {
        self.answered += u64::from(window.holds(Instant::now()) && matches!(outcome, Ok(202)));
        if window.holds(due) {
            self.measured(due, outcome);
        } else {
            self.unmeasured(outcome);
        }
    }

    /// Counts a request that was due at `due` and is not sent any more. It has waited at least until now.
    pub(crate) fn given_up(&mut self, window: Window, due: Instant) {
        if window.holds(due) {
            self.unsent += 1;
            self.record(due);
        }
    }

    fn record(&mut self, from: Instant) {
        let micros = u64::try_from(from.elapsed().as_micros()).unwrap_or(LONGEST);
        self.micros.saturating_record(micros.max(1));
    }

    pub(crate) fn unmeasured(&mut self, outcome: &io::Result<u16>) {
        self.accepted_unmeasured += u64::from(matches!(outcome, Ok(202)));
    }

    pub(crate) fn accepted_per_second(&self) -> f64 {
        self.accepted as f64 / self.span.as_secs_f64()
    }

    /// All accepted ones, within the measured part and outside of it.
    pub(crate) fn accepted_in_all(&self) -> u64 {
        self.accepted + self.accepted_unmeasured
    }

    /// Accepted while the load was on, a second.
    pub(crate) fn answered_per_second(&self) -> f64 {
        self.answered as f64 / self.span.as_secs_f64()
    }

    /// Requests that were sent and not accepted.
    pub(crate) fn errors(&self) -> u64 {
        self.refused.values().sum::<u64>() + self.broken
    }

    /// The time within which this share of the accepted pushes was answered, in milliseconds. Those that were given up are
    /// among them with the time that they had waited.
    pub(crate) fn quantile_millis(&self, quantile: f64) -> f64 {
        self.micros.value_at_quantile(quantile) as f64 / 1e3
    }

    /// The longest time that an accepted push took, or that one which was given up had waited by then.
    pub(crate) fn max_millis(&self) -> f64 {
        self.micros.max() as f64 / 1e3
    }

    /// The errors in words.
    pub(crate) fn describe_errors(&self) -> String {
        let mut parts: Vec<String> = self
            .refused
            .iter()
            .map(|(status, count)| format!("{count} answered with {status}"))
            .collect();
        if self.broken > 0 {
            parts.push(format!("{} without an answer", self.broken));
        }
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_accepted_pushes_count_and_have_times() {
        let mut tally = Tally::new();
        tally.span = Duration::from_secs(2);
        let now = Instant::now();
        for outcome in [
            Ok(202),
            Ok(202),
            Ok(200),
            Ok(503),
            Err(io::ErrorKind::BrokenPipe.into()),
        ] {
            tally.measured(now, &outcome);
        }
        assert_eq!(
            (tally.accepted, tally.errors(), tally.accepted_per_second()),
            (2, 3, 1.0)
        );
        assert_eq!(
            tally.describe_errors(),
            "1 answered with 200, 1 answered with 503, 1 without an answer"
        );
    }

    #[test]
    fn what_is_given_up_counts_with_the_time_that_it_has_waited() {
        let now = Instant::now();
        let ago = |seconds| now.checked_sub(Duration::from_secs(seconds)).unwrap();
        let window = Window {
            from: ago(10),
            to: now + Duration::from_secs(60),
        };
        let mut tally = Tally::new();
        tally.settled(window, ago(11), &Ok(202));
        tally.settled(window, now, &Ok(202));
        tally.given_up(window, ago(11));
        tally.given_up(window, ago(5));
        assert_eq!((tally.accepted, tally.answered, tally.unsent), (1, 2, 1));
        assert_eq!(tally.accepted_in_all(), 2);
        assert!(tally.max_millis() >= 4_990.0, "{}", tally.max_millis());
    }

    #[test]
    fn a_window_holds_its_start_and_not_its_end() {
        let from = Instant::now();
        let window = Window {
            from,
            to: from + Duration::from_secs(1),
        };
        assert!(window.holds(from));
        assert!(!window.holds(window.to));
    }
}

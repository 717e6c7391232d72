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
    /// Answers with 202 that came before the end of an open loop.
    pub(crate) answered: u64,
    /// Length of the measured part.
    pub(crate) span: Duration,
    /// Pushes of a closed loop that were accepted after its end.
    pub(crate) accepted_unmeasured: u64,
    micros: Histogram<u64>,
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

    /// Counts a request of an open loop until `end` that was due at `due` and has ended now.
    pub(crate) fn settled(&mut self, end: Instant, due: Instant, outcome: &io::Result<u16>) {
        self.answered += u64::from(Instant::now() < end && matches!(outcome, Ok(202)));
        self.measured(due, outcome);
    }

    /// Counts a request that was due at `due` and is not sent any more. It has waited at least until now.
    pub(crate) fn given_up(&mut self, due: Instant) {
        self.unsent += 1;
        self.record(due);
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

    /// All accepted ones, those after the end included.
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
        let mut tally = Tally::new();
        tally.settled(now + Duration::from_secs(60), now, &Ok(202));
        tally.settled(ago(1), now, &Ok(202));
        tally.given_up(ago(5));
        assert_eq!((tally.accepted, tally.answered, tally.unsent), (2, 1, 1));
        assert!(tally.max_millis() >= 4_990.0, "{}", tally.max_millis());
    }
}

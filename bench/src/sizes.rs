//! How much a run measures: what was asked for, and what follows from `--quick` for the rest.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::args::SizeArgs;

/// The sizes of one run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sizes {
    pub(crate) rounds: u32,
    pub(crate) measured: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) connections: usize,
    pub(crate) push_rates: Vec<u32>,
    pub(crate) event_rates: Vec<u32>,
    pub(crate) sends: u64,
    pub(crate) each: u64,
    pub(crate) waiting: Vec<u64>,
    pub(crate) subscriptions: u32,
    pub(crate) recovering: u64,
    pub(crate) in_line: u64,
    pub(crate) hold: Duration,
    pub(crate) dead_letters: u64,
    pub(crate) stored: u64,
}

impl Sizes {
    fn quick() -> Self {
        Self {
            rounds: 2,
            measured: Duration::from_secs(5),
            warm_up: Duration::from_secs(1),
            connections: 64,
            push_rates: vec![1_000, 5_000, 10_000, 20_000, 30_000, 50_000],
            event_rates: vec![200, 1_000, 2_000, 4_000, 6_000, 8_000],
            sends: 15_000,
            each: 250,
            waiting: vec![0, 1_000_000],
            subscriptions: 10_000,
            recovering: 50_000,
            in_line: 100_000,
            hold: Duration::from_secs(60),
            dead_letters: 300_000,
            stored: 20_000,
        }
    }

    fn full() -> Self {
        Self {
            rounds: 3,
            measured: Duration::from_secs(10),
            warm_up: Duration::from_secs(2),
            connections: 64,
            push_rates: vec![
                1_000, 2_500, 5_000, 10_000, 15_000, 20_000, 25_000, 30_000, 40_000, 50_000,
            ],
            event_rates: vec![200, 500, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000],
            sends: 100_000,
            each: 10_000,
            waiting: vec![0, 1_000_000, 10_000_000],
            subscriptions: 10_000,
            recovering: 200_000,
            in_line: 5_000_000,
            hold: Duration::from_secs(180),
            dead_letters: 1_000_000,
            stored: 20_000,
        }
    }

    /// A round with its warm-up.
    pub(crate) fn round(&self) -> Duration {
        self.warm_up + self.measured
    }

    /// So many measurements of all rounds each, with a little for what comes before and after each round.
    pub(crate) fn all_rounds(&self, measurements: usize) -> Duration {
        const BESIDES: Duration = Duration::from_secs(1);
        let measurements = u32::try_from(measurements).unwrap_or(u32::MAX);
        (self.round() + BESIDES) * self.rounds * measurements
    }

    /// What decides about numbers, by the names of the options.
    pub(crate) fn named(&self) -> BTreeMap<String, String> {
        let list = |values: &[u32]| values.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let waiting: Vec<String> = self.waiting.iter().map(u64::to_string).collect();
        [
            ("rounds", self.rounds.to_string()),
            ("seconds", self.measured.as_secs().to_string()),
            ("warm-up", self.warm_up.as_secs().to_string()),
            ("connections", self.connections.to_string()),
            ("push-rates", list(&self.push_rates)),
            ("event-rates", list(&self.event_rates)),
            ("sends", self.sends.to_string()),
            ("each", self.each.to_string()),
            ("waiting", waiting.join(",")),
            ("subscriptions", self.subscriptions.to_string()),
            ("recovering", self.recovering.to_string()),
            ("in-line", self.in_line.to_string()),
            ("hold", self.hold.as_secs().to_string()),
            ("letters", self.dead_letters.to_string()),
            ("stored", self.stored.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

impl From<&SizeArgs> for Sizes {
    fn from(args: &SizeArgs) -> Self {
        let args = args.clone();
        let usual = if args.quick { Self::quick() } else { Self::full() };
        let sorted = |mut rates: Vec<u32>| {
            rates.sort_unstable();
            rates
        };
        let mut waiting = args.waiting.unwrap_or(usual.waiting);
        waiting.sort_unstable();
        Self {
            rounds: args.rounds.unwrap_or(usual.rounds),
            measured: args.seconds.map_or(usual.measured, Duration::from_secs),
            warm_up: args.warm_up.map_or(usual.warm_up, Duration::from_secs),
            connections: args.connections.unwrap_or(usual.connections),
            push_rates: args.push_rates.map_or(usual.push_rates, sorted),
            event_rates: args.event_rates.map_or(usual.event_rates, sorted),
            sends: args.sends.unwrap_or(usual.sends),
            each: args.each.unwrap_or(usual.each),
            waiting,
            subscriptions: args.subscriptions.unwrap_or(usual.subscriptions),
            recovering: args.recovering.unwrap_or(usual.recovering),
            in_line: args.in_line.unwrap_or(usual.in_line),
            hold: args.hold.map_or(usual.hold, Duration::from_secs),
            dead_letters: args.letters.unwrap_or(usual.dead_letters),
            stored: args.stored.unwrap_or(usual.stored),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn what_is_given_counts_more_than_quick() {
        let args = SizeArgs {
            quick: true,
            rounds: Some(7),
            waiting: Some(vec![500, 0]),
            ..SizeArgs::default()
        };
        let sizes = Sizes::from(&args);
        assert_eq!((sizes.rounds, sizes.waiting), (7, vec![0, 500]));
        assert_eq!(sizes.measured, Sizes::quick().measured);
    }

    #[test]
    fn a_whole_run_takes_no_longer_than_is_promised() {
        let whole = |sizes: Sizes| {
            Scenario::all()
                .map(|scenario| scenario.expected(&sizes))
                .sum::<Duration>()
        };
        let quick = whole(Sizes::quick());
        assert!(quick < Duration::from_secs(39 * 60), "{quick:?}");
        let full = whole(Sizes::full());
        assert!(full < Duration::from_secs(102 * 60), "{full:?}");
    }
}

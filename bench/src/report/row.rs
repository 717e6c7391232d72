//! One number, with what is needed to judge it.

use serde::{Deserialize, Serialize};

use super::stats::{self, Spread};

/// One number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) measure: String,
    pub(crate) unit: Unit,
    /// The median where there were several rounds; `None` when nothing could be measured.
    pub(crate) value: Option<f64>,
    /// What each round gave, where there were several.
    pub(crate) rounds: Vec<f64>,
    pub(crate) spread: Option<Spread>,
    pub(crate) target: Option<Target>,
    pub(crate) missed: bool,
    /// By which share of the target it was missed; `None` when the target is zero or nothing was measured.
    pub(crate) missed_by: Option<f64>,
    /// What the machine does without Postrider, measured in the same run, and other numbers to compare with.
    pub(crate) beside: Vec<Number>,
}

/// A number that stands beside another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Number {
    pub(crate) name: String,
    pub(crate) value: Option<f64>,
    pub(crate) unit: Unit,
}

impl Number {
    pub(crate) fn new(name: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self {
            name: name.into(),
            value: finite(value),
            unit,
        }
    }
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Unit {
    PerSecond,
    Count,
    Milliseconds,
    Seconds,
    Bytes,
    Megabytes,
    /// Seconds of CPU time for 1,000 of what is counted.
    CpuPerThousand,
    /// How many times as much.
    Times,
}

impl Unit {
    /// Whether more of it is better; `None` where neither is.
    pub(crate) fn more_is_better(self) -> Option<bool> {
        match self {
            Self::PerSecond => Some(true),
            Self::Count | Self::Times => None,
            Self::Milliseconds | Self::Seconds | Self::Bytes | Self::Megabytes | Self::CpuPerThousand => {
                Some(false)
            }
        }
    }
}

/// What a number is to be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
    Under(f64),
}

impl Target {
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
            Self::Under(bound) => value < bound,
        }
    }

    pub(crate) fn bound(self) -> f64 {
        match self {
            Self::AtLeast(bound) | Self::AtMost(bound) | Self::Under(bound) => bound,
        }
    }
}

impl Row {
    pub(crate) fn new(measure: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self {
            measure: measure.into(),
            unit,
            value: finite(value),
            rounds: Vec::new(),
            spread: None,
            target: None,
            missed: false,
            missed_by: None,
            beside: Vec::new(),
        }
    }

    pub(crate) fn count(measure: impl Into<String>, count: u64) -> Self {
        Self::new(measure, count as f64, Unit::Count)
    }

    /// The median of several rounds, with their spread.
    pub(crate) fn median(measure: impl Into<String>, rounds: &[f64], unit: Unit) -> Self {
        let mut row = Self::new(measure, stats::median(rounds).unwrap_or(f64::NAN), unit);
        row.spread = stats::spread(rounds);
        if rounds.len() > 1 {
            row.rounds = rounds.iter().copied().filter(|value| value.is_finite()).collect();
        }
        row
    }

    /// As [`Row::median`], of what `of` takes from each round.
    pub(crate) fn of<T>(
        measure: impl Into<String>,
        unit: Unit,
        rounds: &[T],
        of: impl Fn(&T) -> f64,
    ) -> Self {
        let rounds: Vec<f64> = rounds.iter().map(of).collect();
        Self::median(measure, &rounds, unit)
    }

    /// A number that does not exist misses its target.
    pub(crate) fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self.missed = !self.value.is_some_and(|value| target.is_met(value));
        let bound = target.bound();
        self.missed_by = self
            .value
            .filter(|_| self.missed && bound != 0.0)
            .map(|value| (value - bound).abs() / bound);
        self
    }

    pub(crate) fn beside(mut self, numbers: impl IntoIterator<Item = Number>) -> Self {
        self.beside.extend(numbers);
        self
    }
}

/// JSON knows no other numbers.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_round_has_no_spread() {
        let one = Row::median("", &[7.0], Unit::Count);
        assert_eq!((one.value, one.spread, one.rounds.len()), (Some(7.0), None, 0));
    }

    #[test]
    fn a_number_that_does_not_exist_misses_its_target() {
        for target in [Target::AtLeast(0.0), Target::AtMost(1.0), Target::Under(1.0)] {
            let row = Row::median("", &[], Unit::Count).target(target);
            assert!(row.missed);
            assert_eq!((row.value, row.missed_by), (None, None));
        }
    }

    #[test]
    fn a_bound_itself_is_within_all_targets_but_under() {
        assert!(Target::AtLeast(4.0).is_met(4.0));
        assert!(Target::AtMost(4.0).is_met(4.0));
        assert!(!Target::Under(4.0).is_met(4.0));
    }

    #[test]
    fn a_miss_tells_by_how_much() {
        let slow = Row::new("", 15_000.0, Unit::PerSecond).target(Target::AtLeast(20_000.0));
        assert_eq!((slow.missed, slow.missed_by), (true, Some(0.25)));
        let late = Row::new("", 30.0, Unit::Milliseconds).target(Target::Under(20.0));
        assert_eq!(late.missed_by, Some(0.5));
        let lost = Row::count("", 3).target(Target::AtMost(0.0));
        assert_eq!((lost.missed, lost.missed_by), (true, None));
        let met = Row::new("", 5.0, Unit::Milliseconds).target(Target::Under(20.0));
        assert_eq!((met.missed, met.missed_by), (false, None));
    }
}

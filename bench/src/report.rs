//! What was measured: numbers with their targets. How it looks is the business of `table`.

use serde::Serialize;

/// A whole run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: String,
    pub(crate) sections: Vec<Section>,
}

/// The numbers of one scenario.
#[derive(Debug, Serialize)]
pub(crate) struct Section {
    pub(crate) scenario: &'static str,
    pub(crate) rows: Vec<Row>,
    /// What must be known to read the numbers rightly.
    pub(crate) notes: Vec<String>,
    /// Why the run is not valid, or shows that something was lost.
    pub(crate) broken: Vec<String>,
}

impl Section {
    pub(crate) fn new(scenario: &'static str) -> Self {
        Self {
            scenario,
            rows: Vec::new(),
            notes: Vec::new(),
            broken: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

/// One number.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) measure: String,
    /// The median where there were several rounds.
    pub(crate) value: f64,
    pub(crate) unit: Unit,
    /// Smallest and greatest of the rounds.
    pub(crate) spread: Option<(f64, f64)>,
    pub(crate) target: Option<Target>,
    pub(crate) missed: bool,
    /// What the machine does without Postrider, measured in the same run.
    pub(crate) floor: Option<String>,
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Unit {
    PerSecond,
    Count,
    Milliseconds,
    Seconds,
    Megabytes,
    /// Microseconds of CPU time for one push.
    CpuMicros,
}

/// What a number is to be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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
}

impl Row {
    pub(crate) fn new(measure: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self {
            measure: measure.into(),
            value,
            unit,
            spread: None,
            target: None,
            missed: false,
            floor: None,
        }
    }

    /// The median of several rounds, with their spread. No rounds give NaN, which meets no target.
    pub(crate) fn median(measure: impl Into<String>, rounds: &[f64], unit: Unit) -> Self {
        let mut sorted = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() {
            0 => f64::NAN,
            length if length % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            _ => sorted[middle],
        };
        let mut row = Self::new(measure, median, unit);
        if let [low, .., high] = sorted[..] {
            row.spread = Some((low, high));
        }
        row
    }

    pub(crate) fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self.missed = !target.is_met(self.value);
        self
    }

    pub(crate) fn floor(mut self, floor: impl Into<String>) -> Self {
        self.floor = Some(floor.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_round_or_between_the_two_middle_ones() {
        let odd = Row::median("", &[3.0, 1.0, 2.0], Unit::Count);
        assert_eq!((odd.value, odd.spread), (2.0, Some((1.0, 3.0))));
        let even = Row::median("", &[4.0, 1.0, 2.0, 3.0], Unit::Count);
        assert_eq!((even.value, even.spread), (2.5, Some((1.0, 4.0))));
        let one = Row::median("", &[7.0], Unit::Count);
        assert_eq!((one.value, one.spread), (7.0, None));
    }

    #[test]
    fn a_number_that_does_not_exist_misses_its_target() {
        for target in [Target::AtLeast(0.0), Target::AtMost(1.0), Target::Under(1.0)] {
            assert!(Row::median("", &[], Unit::Count).target(target).missed);
        }
    }

    #[test]
    fn a_bound_itself_is_within_all_targets_but_under() {
        assert!(Target::AtLeast(4.0).is_met(4.0));
        assert!(Target::AtMost(4.0).is_met(4.0));
        assert!(!Target::Under(4.0).is_met(4.0));
    }
}

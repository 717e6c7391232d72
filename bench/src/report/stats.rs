//! What is said of several rounds: the middle, how far apart they were, and where a curve bends. Pure.

use serde::{Deserialize, Serialize};

/// Smallest and greatest of the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The middle of the finite ones of `rounds`; `None` when there is none.
pub(crate) fn median(rounds: &[f64]) -> Option<f64> {
    let sorted = sorted(rounds);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length.is_multiple_of(2) => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
        _ => Some(sorted[middle]),
    }
}

/// How far the rounds were apart; `None` with fewer than two.
pub(crate) fn spread(rounds: &[f64]) -> Option<Spread> {
    match sorted(rounds)[..] {
        [low, .., high] => Some(Spread { low, high }),
        _ => None,
    }
}

fn sorted(rounds: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = rounds.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The value within which this share of `values` lies; NaN when there is none.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let sorted = sorted(values);
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// One step of a curve of load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// What was offered, a second.
    pub(crate) offered: f64,
    /// What came out, a second.
    pub(crate) done: f64,
    /// The 99th percentile of the time that it took, in milliseconds.
    pub(crate) p99: f64,
}

impl Step {
    /// Of what is offered, so much must come out for a step to be kept up with: the edges of a window cut a little off.
    const KEPT_UP: f64 = 0.98;

    /// A step of `rate` a second, from its rounds: the medians of what came out a second, and of the 99th percentile in
    /// milliseconds.
    pub(crate) fn of<R>(rate: u32, rounds: &[R], done: impl Fn(&R) -> f64, p99: impl Fn(&R) -> f64) -> Self {
        let middle = |values: Vec<f64>| median(&values).unwrap_or(f64::NAN);
        Self {
            offered: f64::from(rate),
            done: middle(rounds.iter().map(done).collect()),
            p99: middle(rounds.iter().map(p99).collect()),
        }
    }

    /// Whether as much came out as was offered.
    pub(crate) fn keeps_up(&self) -> bool {
        self.done >= self.offered * Self::KEPT_UP
    }
}

/// The last step of `steps`, in ascending order, before the first that cannot be kept up with or takes longer than
/// `limit` milliseconds. `None` when that is the first one.
pub(crate) fn knee(steps: &[Step], limit: f64) -> Option<Step> {
    steps
        .iter()
        .take_while(|step| step.keeps_up() && step.p99 <= limit)
        .last()
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_round_or_between_the_two_middle_ones() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_round_without_a_number_does_not_count() {
        assert_eq!(median(&[f64::NAN, 2.0, f64::INFINITY]), Some(2.0));
        assert_eq!(median(&[f64::NAN]), None);
        assert_eq!(spread(&[f64::NAN, 2.0]), None);
    }

    #[test]
    fn the_spread_is_from_the_smallest_round_to_the_greatest() {
        let found = spread(&[3.0, 1.0, 2.0]);
        assert_eq!(found, Some(Spread { low: 1.0, high: 3.0 }));
        assert_eq!(spread(&[3.0]), None);
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!((quantile(&values, 0.5), quantile(&values, 0.99)), (50.0, 99.0));
        assert_eq!((quantile(&values, 1.0), quantile(&[7.0], 0.0)), (100.0, 7.0));
        assert!(quantile(&[], 0.5).is_nan());
    }

    fn step(offered: f64, done: f64, p99: f64) -> Step {
        Step { offered, done, p99 }
    }

    #[test]
    fn the_knee_is_the_last_step_that_is_kept_up_with_in_time() {
        let steps = [
            step(10.0, 10.0, 1.0),
            step(20.0, 19.7, 2.0),
            step(30.0, 22.0, 900.0),
        ];
        assert_eq!(knee(&steps, 20.0), Some(steps[1]));
        assert_eq!(knee(&steps, 1.5), Some(steps[0]));
    }

    #[test]
    fn a_curve_that_recovers_has_its_knee_before_the_first_bad_step() {
        let steps = [
            step(10.0, 10.0, 1.0),
            step(20.0, 20.0, 50.0),
            step(30.0, 30.0, 3.0),
        ];
        assert_eq!(knee(&steps, 20.0), Some(steps[0]));
    }

    #[test]
    fn a_curve_that_begins_past_saturation_has_no_knee() {
        assert_eq!(knee(&[step(10.0, 5.0, 1.0)], 20.0), None);
        assert_eq!(knee(&[step(10.0, 10.0, f64::NAN)], 20.0), None);
        assert_eq!(knee(&[], 20.0), None);
    }
}

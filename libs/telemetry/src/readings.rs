//! The present values of our own metrics, for a process that reports itself.
//!
//! It deliberately reads the same text that `/metrics` hands out: whatever a process says of itself is what its metrics say.

use crate::{Metric, recorder};

/// All metrics at one moment.
#[derive(Debug, Clone)]
pub struct Readings(String);

impl Readings {
    /// The metrics as they are now; all of them 0 without [`crate::init`].
    pub fn take() -> Self {
        Self(recorder::render_metrics())
    }

    /// The sum of a counter or gauge over all of its labels.
    pub fn sum(&self, metric: Metric) -> f64 {
        let name = metric.definition().name;
        let values = self.0.lines().filter_map(|line| {
            let (series, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
            // A longer name may begin with this one.
            let whole = series.is_empty() || series.starts_with('{');
            if whole { value.parse::<f64>().ok() } else { None }
        });
        values.sum()
    }

    /// [`Readings::sum`] as a number of things.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counters and counts are whole, and a negative one is 0"
    )]
    pub fn count(&self, metric: Metric) -> u64 {
        self.sum(metric) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_a_metric_are_added_and_those_of_a_longer_name_are_not() {
        let readings = Readings(
            "# TYPE postrider_push_leader gauge\n\
             postrider_push_leader 1\n\
             postrider_push_leader_epoch 7\n\
             postrider_notifications_failed_total{reason=\"gone\"} 2\n\
             postrider_notifications_failed_total{reason=\"redirect\"} 3\n"
                .to_owned(),
        );
        assert_eq!(readings.count(Metric::PushLeader), 1);
        assert_eq!(readings.count(Metric::PushLeaderEpoch), 7);
        assert_eq!(readings.count(Metric::NotificationsFailed), 5);
        assert_eq!(readings.count(Metric::PushSent), 0);
    }
}

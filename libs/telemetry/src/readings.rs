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

    /// Metrics as `/metrics` writes them.
    pub fn of(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The sum of a counter or gauge over all of its labels.
    pub fn sum(&self, metric: Metric) -> f64 {
        self.sum_of(metric, |_| true)
    }

    /// The sum over those series alone whose labels, as they stand in the text, are `wanted`.
    pub fn sum_of(&self, metric: Metric, wanted: impl Fn(&str) -> bool) -> f64 {
        self.series(metric)
            .filter(|(labels, _)| wanted(labels))
            .map(|(_, value)| value)
            .sum()
    }

    /// What a metric without labels is; `None` when it was never set.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.series(metric).next().map(|(_, value)| value)
    }

    fn series(&self, metric: Metric) -> impl Iterator<Item = (&str, f64)> {
        let name = metric.definition().name;
        self.0.lines().filter_map(move |line| {
            let (labels, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
            // A longer name may begin with this one.
            let whole = labels.is_empty() || labels.starts_with('{');
            whole.then(|| Some((labels, value.parse().ok()?)))?
        })
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

    /// [`Readings::sum_of`] as a number of things.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counters and counts are whole, and a negative one is 0"
    )]
    pub fn count_of(&self, metric: Metric, wanted: impl Fn(&str) -> bool) -> u64 {
        self.sum_of(metric, wanted) as u64
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
        let redirects = |labels: &str| labels.contains(r#"reason="redirect""#);
        assert_eq!(readings.count_of(Metric::NotificationsFailed, redirects), 3);
        assert_eq!(readings.count(Metric::PushSent), 0);
        assert_eq!(readings.value(Metric::PushLeaderEpoch), Some(7.0));
        assert_eq!(readings.value(Metric::PushFailingSince), None);
    }
}

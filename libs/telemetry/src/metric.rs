//! How a sample reaches the recorder.
//!
//! An unlabelled sample costs one look-up in the recorder and no allocation; where even that is too much, a handle from
//! [`Metric::counter`], [`Metric::gauge`] or [`Metric::histogram`] can be kept. Before [`crate::init`] samples go nowhere.
//!
//! It deliberately takes no free names: what is not in the catalogue cannot be measured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata};

use crate::{Kind, Metric};

static METADATA: Metadata<'static> = Metadata::new("postrider", Level::INFO, None);

/// The bits of what each gauge without labels was last set to, which the recorder gives out with all other metrics alone.
static LAST_SET: [AtomicU64; Metric::ALL.len()] =
    [const { AtomicU64::new(f64::NAN.to_bits()) }; Metric::ALL.len()];

/// Label names with their values.
type Labels<'a> = &'a [(&'static str, &'a str)];

impl Metric {
    /// Adds to a counter without labels.
    pub fn increment(self, by: u64) {
        self.increment_with(&[], by);
    }

    /// Adds to a counter with labels.
    pub fn increment_with(self, labels: Labels<'_>, by: u64) {
        self.counter(labels).increment(by);
    }

    /// Sets a gauge without labels.
    pub fn set(self, value: impl Into<f64>) {
        let value = value.into();
        LAST_SET[self as usize].store(value.to_bits(), Ordering::Relaxed);
        self.set_with(&[], value);
    }

    /// What [`Metric::set`] has last set a gauge to, NaN before; for one who asks often about one alone. What a handle does is not in it.
    pub fn last_set(self) -> f64 {
        f64::from_bits(LAST_SET[self as usize].load(Ordering::Relaxed))
    }

    /// Sets a gauge with labels.
    pub fn set_with(self, labels: Labels<'_>, value: impl Into<f64>) {
        self.gauge(labels).set(value.into());
    }

    /// Records an observation in a histogram without labels.
    pub fn record(self, value: impl Into<f64>) {
        self.histogram(&[]).record(value.into());
    }

    /// Records a duration, in seconds, in a histogram without labels.
    pub fn record_duration(self, value: Duration) {
        self.record(value.as_secs_f64());
    }

    /// A handle on a counter, for hot paths. Taken before [`crate::init`] it counts nothing.
    pub fn counter(self, labels: Labels<'_>) -> Counter {
        debug_assert!(self.definition().kind == Kind::Counter, "{self:?} is no counter");
        metrics::with_recorder(|recorder| recorder.register_counter(&self.key(labels), &METADATA))
    }

    /// A handle on a gauge, for hot paths. Taken before [`crate::init`] it sets nothing.
    pub fn gauge(self, labels: Labels<'_>) -> Gauge {
        debug_assert!(self.definition().kind == Kind::Gauge, "{self:?} is no gauge");
        metrics::with_recorder(|recorder| recorder.register_gauge(&self.key(labels), &METADATA))
    }

    /// A handle on a histogram, for hot paths. Taken before [`crate::init`] it records nothing.
    pub fn histogram(self, labels: Labels<'_>) -> Histogram {
        debug_assert!(
            matches!(self.definition().kind, Kind::Histogram(_)),
            "{self:?} is no histogram"
        );
        metrics::with_recorder(|recorder| recorder.register_histogram(&self.key(labels), &METADATA))
    }

    fn key(self, labels: Labels<'_>) -> Key {
        let definition = self.definition();
        debug_assert!(
            labels.iter().map(|(name, _)| name).eq(definition.labels),
            "{self:?} has the labels {:?}",
            definition.labels
        );
        if labels.is_empty() {
            return Key::from_static_name(definition.name);
        }
        let labels: Vec<Label> = labels
            .iter()
            .map(|(name, value)| Label::new(*name, (*value).to_owned()))
            .collect();
        Key::from_parts(definition.name, labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_alone_is_what_it_was_last_set_to() {
        assert!(Metric::PushLeaderEpoch.last_set().is_nan());
        for epoch in [7_i32, 8] {
            Metric::PushLeaderEpoch.set(epoch);
            assert_eq!(Metric::PushLeaderEpoch.last_set(), f64::from(epoch));
        }
        assert!(Metric::PushLeader.last_set().is_nan(), "another gauge");
    }
}

//! How long attempts and deliveries took, as counts in buckets that can be added up: by process, by hour, by week.
//!
//! Exact durations cannot be added up without keeping all of them; buckets that grow with the duration are precise enough
//! for percentiles and always of the same number.

use std::time::Duration;

/// How many buckets there are. The last one also takes everything that is longer.
pub const BUCKETS: usize = 64;

/// Durations by bucket: bucket `i` counts those of less than 2^(i/`PER_DOUBLING`) milliseconds that bucket `i - 1` does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram<const PER_DOUBLING: u32>([u64; BUCKETS]);

/// How long attempts took: up to a minute, within a fifth.
pub type Latencies = Histogram<4>;

/// How long after its event something was delivered: up to the month that it may wait, within two fifths.
pub type Delays = Histogram<2>;

impl<const PER_DOUBLING: u32> Default for Histogram<PER_DOUBLING> {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl<const PER_DOUBLING: u32> Histogram<PER_DOUBLING> {
    /// Reads back what [`Self::counts`] gave; missing buckets are empty, further ones go to the last.
    pub fn from_counts(counts: impl IntoIterator<Item = u64>) -> Self {
        let mut histogram = Self::default();
        for (index, count) in counts.into_iter().enumerate() {
            histogram.0[index.min(BUCKETS - 1)] += count;
        }
        histogram
    }

    /// The buckets, the shortest durations first.
    pub fn counts(&self) -> &[u64; BUCKETS] {
        &self.0
    }

    /// Counts one duration.
    pub fn record(&mut self, duration: Duration) {
        self.0[Self::bucket_of(duration)] += 1;
    }

    /// Adds what another one has counted.
    pub fn add(&mut self, other: &Self) {
        for (own, others) in self.0.iter_mut().zip(&other.0) {
            *own += others;
        }
    }

    /// How many durations were counted.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The duration below which the share `part` (0 to 1) of those counted lies, in milliseconds, estimated within its
    /// bucket; `None` when nothing was counted.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "an estimate; counts stay far below 2^52"
    )]
    pub fn percentile(&self, part: f64) -> Option<f64> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        let wanted = (part.clamp(0.0, 1.0) * total as f64).max(1.0);
        let mut below = 0.0;
        for (index, count) in self.0.iter().map(|count| *count as f64).enumerate() {
            if count > 0.0 && below + count >= wanted {
                let (from, to) = (Self::lower_bound(index), Self::upper_bound(index));
                return Some(from + (to - from) * (wanted - below) / count);
            }
            below += count;
        }
        Some(Self::upper_bound(BUCKETS - 1))
    }

    fn bucket_of(duration: Duration) -> usize {
        let millis = duration.as_secs_f64() * 1_000.0;
        let first = (0..BUCKETS - 1).find(|index| millis < Self::upper_bound(*index));
        first.unwrap_or(BUCKETS - 1)
    }

    fn upper_bound(index: usize) -> f64 {
        let exponent = u32::try_from(index).expect("invariant: there are few buckets");
        (f64::from(exponent) / f64::from(PER_DOUBLING)).exp2()
    }

    fn lower_bound(index: usize) -> f64 {
        index.checked_sub(1).map_or(0.0, Self::upper_bound)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(millis: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        for millis in millis {
            latencies.record(Duration::from_millis(*millis));
        }
        latencies
    }

    #[test]
    fn a_bucket_ends_before_its_bound() {
        assert_eq!(Latencies::bucket_of(Duration::ZERO), 0);
        assert_eq!(Latencies::bucket_of(Duration::from_micros(999)), 0);
        assert_eq!(Latencies::bucket_of(Duration::from_millis(1)), 1);
        assert_eq!(Latencies::bucket_of(Duration::from_millis(2)), 5);
        assert_eq!(Latencies::bucket_of(Duration::from_millis(1_024)), 41);
        assert_eq!(Latencies::bucket_of(Duration::from_secs(86_400)), BUCKETS - 1);
    }

    #[test]
    fn a_delay_of_weeks_is_told_from_one_of_days() {
        let days = |days: u64| {
            let mut delays = Delays::default();
            delays.record(Duration::from_secs(days * 86_400));
            delays.percentile(0.5).unwrap() / 86_400_000.0
        };
        for exact in [1, 3, 10, 20, 30] {
            let estimate = days(exact);
            assert!(
                (0.7..1.42).contains(&(estimate / exact as f64)),
                "{estimate} for {exact}"
            );
        }
    }

    #[test]
    fn nothing_counted_has_no_percentile() {
        assert_eq!(Latencies::default().percentile(0.5), None);
    }

    #[test]
    fn counts_that_are_more_or_fewer_than_the_buckets_are_read() {
        assert_eq!(Latencies::from_counts([1, 2]).total(), 3);
        let longer = Latencies::from_counts(std::iter::repeat_n(1, BUCKETS + 3));
        assert_eq!(longer.counts()[BUCKETS - 1], 4);
    }

    proptest! {
        #[test]
        fn a_percentile_is_within_a_fifth_of_the_exact_one(
            mut millis in prop::collection::vec(1_u64..30_000, 1..200), part in 0.01_f64..1.0,
        ) {
            let estimate = of(&millis).percentile(part).unwrap();
            millis.sort_unstable();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
            let rank = ((part * millis.len() as f64).ceil() as usize).clamp(1, millis.len());
            let exact = millis[rank - 1] as f64;
            prop_assert!(estimate >= exact / 1.2 && estimate <= exact * 1.2, "{estimate} for {exact}");
        }

        #[test]
        fn adding_up_is_the_same_as_counting_together(
            a in prop::collection::vec(0_u64..100_000, 0..50), b in prop::collection::vec(0_u64..100_000, 0..50),
        ) {
            let mut sum = of(&a);
            sum.add(&of(&b));
            prop_assert_eq!(sum, of(&[a, b].concat()));
        }
    }
}

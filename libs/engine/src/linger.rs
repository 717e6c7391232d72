//! When many come, a batch waits a moment for company: a statement and its commit cost far more than the rows in them.
//!
//! When few come the batch does not wait, because there would be no company. It deliberately knows nothing of what is gathered.

use std::time::{Duration, Instant};

/// How long the rate of the past counts.
const MEMORY: Duration = Duration::from_millis(50);

/// The pace of one kind of batch.
pub(crate) struct Linger {
    /// Between the beginnings of two batches when many come.
    interval: Duration,
    /// How many a second are many.
    many: f64,
    /// How many came a second lately, as it was at `last`.
    rate: f64,
    last: Option<Instant>,
}

impl Linger {
    pub(crate) fn new(interval: Duration, many: u32) -> Self {
        Self {
            interval,
            many: many.into(),
            rate: 0.0,
            last: None,
        }
    }

    /// When the next batch may begin; `None` when it may at once.
    pub(crate) fn wait(&self, now: Instant) -> Option<Instant> {
        let next = self.last? + self.interval;
        (self.rate >= self.many && now < next).then_some(next)
    }

    /// A batch of so many begins.
    pub(crate) fn begin(&mut self, now: Instant, size: usize) {
        let since = self.last.replace(now).map_or(Duration::MAX, |last| now - last);
        let kept = (-since.as_secs_f64() / MEMORY.as_secs_f64()).exp();
        self.rate = self.rate * kept + size as f64 / MEMORY.as_secs_f64();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(4);

    /// The pace after batches of `size`, one each `every`.
    fn after(size: usize, every: Duration) -> (Linger, Instant) {
        let (mut linger, mut now) = (Linger::new(INTERVAL, 1_500), Instant::now());
        for _ in 0..100 {
            now += every;
            linger.begin(now, size);
        }
        (linger, now)
    }

    #[test]
    fn few_never_wait() {
        let (linger, now) = after(1, Duration::from_millis(5));
        assert_eq!(linger.wait(now), None);
        assert_eq!(Linger::new(INTERVAL, 1_500).wait(now), None);
    }

    #[test]
    fn many_wait_until_the_interval_is_over_however_small_their_batches() {
        for (size, every) in [(3, 1), (100, 20)] {
            let (linger, now) = after(size, Duration::from_millis(every));
            assert_eq!(linger.wait(now), Some(now + INTERVAL));
            assert_eq!(linger.wait(now + INTERVAL), None);
        }
    }

    #[test]
    fn a_burst_after_silence_is_not_many() {
        let (mut linger, now) = after(1, Duration::from_millis(5));
        linger.begin(now + Duration::from_secs(1), 20);
        assert_eq!(linger.wait(now + Duration::from_secs(1)), None);
    }

    #[test]
    fn after_many_the_first_of_few_begins_at_once() {
        let (linger, now) = after(100, Duration::from_millis(20));
        assert_eq!(linger.wait(now + Duration::from_millis(5)), None);
    }
}

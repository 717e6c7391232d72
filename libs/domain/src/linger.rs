//! When many come, a batch waits a moment for company: a statement and its commit cost far more than the rows in them.
//!
//! When few come the batch does not wait, because there would be no company. It deliberately knows nothing of what is gathered.

use std::time::{Duration, Instant};

/// How long the rate of the past counts.
const MEMORY: Duration = Duration::from_millis(50);

/// The pace from a rate on.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// So many a second.
    pub from: u32,
    /// Between the beginnings of two batches.
    pub interval: Duration,
}

/// The pace of one kind of batch.
#[derive(Debug)]
pub struct Linger {
    paces: &'static [Pace],
    /// How many came a second lately, as it was at `last`.
    rate: f64,
    last: Option<Instant>,
}

impl Linger {
    /// For batches that keep these paces, the one of the lowest rate first. Below that none waits.
    pub fn new(paces: &'static [Pace]) -> Self {
        Self {
            paces,
            rate: 0.0,
            last: None,
        }
    }

    /// When the next batch may begin; `None` when it may at once.
    pub fn wait(&self, now: Instant) -> Option<Instant> {
        let mut paces = self.paces.iter().rev();
        let pace = paces.find(|pace| self.rate >= f64::from(pace.from))?;
        let next = self.last? + pace.interval;
        (now < next).then_some(next)
    }

    /// A batch of so many begins.
    pub fn begin(&mut self, now: Instant, size: usize) {
        let since = self.last.replace(now).map_or(Duration::MAX, |last| now - last);
        let kept = (-since.as_secs_f64() / MEMORY.as_secs_f64()).exp();
        self.rate = self.rate * kept + size as f64 / MEMORY.as_secs_f64();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Pace = Pace {
        from: 500,
        interval: Duration::from_millis(4),
    };
    const MANY: Pace = Pace {
        from: 1_500,
        interval: Duration::from_millis(8),
    };

    fn linger() -> Linger {
        Linger::new(&[SOME, MANY])
    }

    /// The pace after batches of `size`, one each `every`.
    fn after(size: usize, every: Duration) -> (Linger, Instant) {
        let (mut linger, mut now) = (linger(), Instant::now());
        for _ in 0..100 {
            now += every;
            linger.begin(now, size);
        }
        (linger, now)
    }

    #[test]
    fn few_never_wait() {
        let (few, now) = after(1, Duration::from_millis(5));
        assert_eq!(few.wait(now), None);
        assert_eq!(linger().wait(now), None);
    }

    #[test]
    fn the_more_come_the_longer_they_wait_however_small_their_batches() {
        for (size, every, pace) in [(3, 4, SOME), (3, 1, MANY), (100, 20, MANY)] {
            let (linger, now) = after(size, Duration::from_millis(every));
            assert_eq!(linger.wait(now), Some(now + pace.interval));
            assert_eq!(linger.wait(now + pace.interval), None);
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
        assert_eq!(linger.wait(now + Duration::from_millis(8)), None);
    }
}

//! How much of a replay may follow at a time, so that it keeps its rate across steps, processes and crashes: all that has
//! to be remembered is one instant.

use chrono::{DateTime, TimeDelta, Utc};

/// What may be replayed at once after a pause: as much as in this time.
const BURST: TimeDelta = TimeDelta::seconds(1);

/// The rate that is left now, and what it is measured from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateBudget {
    from: DateTime<Utc>,
    per_second: u32,
    /// Of so many parts of the rate it is one.
    parts: u32,
    /// How many may follow at once.
    pub count: usize,
}

impl RateBudget {
    /// What is left at `now`, when the rate was used up to `paced_to`.
    pub fn at(now: DateTime<Utc>, paced_to: DateTime<Utc>, per_second: u32) -> Self {
        Self::part(now, paced_to, per_second, 1)
    }

    /// What is left of one of `parts` equal parts of the rate.
    pub fn part(now: DateTime<Utc>, paced_to: DateTime<Utc>, per_second: u32, parts: u32) -> Self {
        let (per_second, parts) = (per_second.max(1), parts.max(1));
        // Of a part that is less than one a second one is saved up for.
        let one = (1_000_000 * u64::from(parts)).div_ceil(u64::from(per_second));
        let burst = BURST.max(TimeDelta::microseconds(i64::try_from(one).unwrap_or(i64::MAX)));
        // A clock that was turned back would otherwise stop the replay until it is where it was.
        let from = paced_to.clamp(now - burst, now);
        let micros = u64::try_from((now - from).num_microseconds().unwrap_or(0)).unwrap_or(0);
        let count = micros * u64::from(per_second) / (1_000_000 * u64::from(parts));
        Self {
            from,
            per_second,
            parts,
            count: usize::try_from(count).unwrap_or(usize::MAX),
        }
    }

    /// Up to when the rate is used up once `used` of them have followed.
    pub fn paced_to(self, used: usize) -> DateTime<Utc> {
        let micros = used as u64 * 1_000_000 * u64::from(self.parts) / u64::from(self.per_second);
        self.from + TimeDelta::microseconds(i64::try_from(micros).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::milliseconds(millis)
    }

    #[test]
    fn the_rate_is_kept_over_many_steps_and_no_more_than_a_second_is_made_up_for() {
        let (mut paced_to, mut sent) = (at(100_000), 0);
        for step in 1..=100 {
            let rate_budget = RateBudget::at(at(100_000 + step * 130), paced_to, 7);
            sent += rate_budget.count;
            paced_to = rate_budget.paced_to(rate_budget.count);
        }
        assert_eq!(sent, 13 * 7);
        assert_eq!(RateBudget::at(at(900_000), paced_to, 7).count, 7);
    }

    #[test]
    fn a_part_of_a_rate_is_kept_though_it_is_less_than_one_a_second() {
        let (mut paced_to, mut sent) = (at(100_000), Vec::new());
        for step in 1..=240 {
            let now = at(100_000 + step * 50);
            let rate_budget = RateBudget::part(now, paced_to, 1, 4);
            sent.extend(std::iter::repeat_n(step * 50, rate_budget.count));
            paced_to = rate_budget.paced_to(rate_budget.count);
        }
        assert_eq!(sent, [4_000, 8_000, 12_000]);
        assert_eq!(RateBudget::part(at(900_000), paced_to, 1, 4).count, 1);
        assert_eq!(RateBudget::part(at(900_000), paced_to, 40, 4).count, 10);
    }

    #[test]
    fn a_clock_that_was_turned_back_stops_it_for_no_longer_than_a_moment() {
        let turned = RateBudget::at(at(50_000), at(100_000), 10);
        assert_eq!(turned.count, 0);
        assert_eq!(RateBudget::at(at(50_500), turned.paced_to(0), 10).count, 5);
    }
}

//! The arithmetic of daily quotas.
//!
//! A subscription's places are numbered from the beginning of a day on, without end: those below the quota are of that
//! day, the next as many of the day after. Whoever charges takes the next numbers, so that the oldest get the earliest
//! days and no day ever gets more than its quota. `store` does the same sums in SQL, under a row lock.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

/// How many places of a subscription are taken, counted from the beginning of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The day that the count begins with.
    pub day: NaiveDate,
    /// Places taken.
    pub used: u64,
}

/// A place on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The day.
    pub day: NaiveDate,
    /// Its number on that day, from 0.
    pub number: u64,
}

impl Budget {
    /// The budget as it is counted from `today` on: what was taken of the days before is over. A clock that went back
    /// changes nothing.
    #[must_use]
    pub fn on(self, today: NaiveDate, quota: u32) -> Self {
        let days = u64::try_from((today - self.day).num_days()).unwrap_or(0);
        Self {
            day: self.day.max(today),
            used: self.used.saturating_sub(days.saturating_mul(u64::from(quota))),
        }
    }

    /// Takes `count` places under a quota, where those taken so far were under the quota `before`; returns the new budget
    /// and the number of the first of them.
    ///
    /// What has a place on a coming day keeps it when the quota changes, so that the days up to the last of those are
    /// not filled up: nobody overtakes, and no day is overbooked.
    #[must_use]
    pub fn charge(self, today: NaiveDate, before: u32, quota: u32, count: u64) -> (Self, u64) {
        let mut current = self.on(today, before);
        if before != quota {
            current = current.moved(before, quota);
        }
        let charged = Self {
            used: current.used.saturating_add(count),
            ..current
        };
        (charged, current.used)
    }

    /// The budget from the last day on that has a place taken. A day that has had more than the new quota allows is over;
    /// the days after it owe nothing.
    fn moved(self, before: u32, quota: u32) -> Self {
        let last = self.place(self.used.saturating_sub(1), before);
        let used = if self.used == 0 { 0 } else { last.number + 1 };
        if used > u64::from(quota) {
            let day = last.day.succ_opt().unwrap_or(NaiveDate::MAX);
            return Self { day, used: 0 };
        }
        Self { day: last.day, used }
    }

    /// The place that a number counted from [`Budget::day`] is.
    #[must_use]
    pub fn place(self, number: u64, quota: u32) -> Place {
        let quota = u64::from(quota.max(1));
        let days = i64::try_from(number / quota).unwrap_or(i64::MAX);
        let day = TimeDelta::try_days(days)
            .and_then(|days| self.day.checked_add_signed(days))
            .unwrap_or(NaiveDate::MAX);
        Place {
            day,
            number: number % quota,
        }
    }

    /// How many places of `today` are taken.
    #[must_use]
    pub fn used_on(self, today: NaiveDate, quota: u32) -> u64 {
        let current = self.on(today, quota);
        if current.day > today {
            return u64::from(quota);
        }
        current.used.min(u64::from(quota))
    }
}

impl Place {
    /// When what got this place is released: the places of a day are spread evenly over the first `window` of it.
    #[must_use]
    pub fn release_at(self, quota: u32, zone: Tz, window: Duration) -> DateTime<Utc> {
        let offset = window.mul_f64(self.number as f64 / f64::from(quota.max(1)));
        TimeDelta::from_std(offset)
            .ok()
            .and_then(|offset| start_of(self.day, zone).checked_add_signed(offset))
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}

/// The first instant of a day in a time zone.
#[must_use]
pub fn start_of(day: NaiveDate, zone: Tz) -> DateTime<Utc> {
    let midnight = day.and_time(NaiveTime::MIN);
    // Where clocks go forward at midnight the day begins an hour later.
    (0..=3)
        .find_map(|hours| {
            zone.from_local_datetime(&(midnight + TimeDelta::hours(hours)))
                .earliest()
        })
        .map_or_else(|| midnight.and_utc(), |start| start.with_timezone(&Utc))
}

/// The day that an instant is on in a time zone.
#[must_use]
pub fn day_of(at: DateTime<Utc>, zone: Tz) -> NaiveDate {
    at.with_timezone(&zone).date_naive()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn day(number: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 3, number).unwrap()
    }

    #[test]
    fn what_exceeds_a_day_lies_on_the_next_ones() {
        let fresh = Budget { day: day(1), used: 0 };
        let (charged, first) = fresh.charge(day(1), 10, 10, 25);
        assert_eq!((charged.used, first), (25, 0));
        assert_eq!(
            charged.place(9, 10),
            Place {
                day: day(1),
                number: 9
            }
        );
        assert_eq!(
            charged.place(10, 10),
            Place {
                day: day(2),
                number: 0
            }
        );
        assert_eq!(
            charged.place(24, 10),
            Place {
                day: day(3),
                number: 4
            }
        );
        assert_eq!([1, 2, 3, 4].map(|d| charged.used_on(day(d), 10)), [10, 10, 5, 0]);
        let (later, first) = charged.charge(day(3), 10, 10, 1);
        assert_eq!((later, first), (Budget { day: day(3), used: 6 }, 5));
    }

    #[test]
    fn a_quota_that_is_lowered_during_the_day_ends_the_day_and_no_more() {
        let used = Budget {
            day: day(1),
            used: 80,
        };
        let (charged, first) = used.charge(day(1), 100, 10, 1);
        assert_eq!(
            charged.place(first, 10),
            Place {
                day: day(2),
                number: 0
            }
        );
    }

    #[test]
    fn a_clock_that_went_back_gives_nothing_away() {
        let budget = Budget {
            day: day(5),
            used: 10,
        };
        let (charged, first) = budget.charge(day(4), 10, 10, 1);
        assert_eq!((charged.day, first), (day(5), 10));
        assert_eq!(budget.used_on(day(4), 10), 10);
    }

    #[test]
    fn a_day_is_released_over_the_window_and_starts_when_it_does() {
        let zone = chrono_tz::Europe::Berlin;
        let place = |number| Place { day: day(2), number };
        let at = |number| place(number).release_at(4, zone, Duration::from_secs(3_600));
        assert_eq!(at(0).to_rfc3339(), "2026-03-01T23:00:00+00:00");
        assert_eq!(at(3).to_rfc3339(), "2026-03-01T23:45:00+00:00");
        // Clocks went from 24:00 to 01:00 in Beirut that night.
        let beirut = start_of(
            NaiveDate::from_ymd_opt(2022, 3, 27).unwrap(),
            chrono_tz::Asia::Beirut,
        );
        assert_eq!(beirut.to_rfc3339(), "2022-03-26T22:00:00+00:00");
    }

    proptest! {
        /// However charges are split, days pass and quotas change, no day gets more than its quota and nobody overtakes.
        #[test]
        fn no_day_is_overbooked(charges in proptest::collection::vec((0_i64..3, 0_u64..40, 1_u32..20), 1..40)) {
            let mut budget = Budget { day: day(1), used: 0 };
            let (mut today, mut taken, mut last) = (day(1), BTreeMap::<NaiveDate, u64>::new(), None);
            let mut before = 10;
            for (days, count, quota) in charges {
                today += TimeDelta::days(days);
                let (charged, first) = budget.charge(today, before, quota, count);
                budget = charged;
                before = quota;
                for number in first..first + count {
                    let place = budget.place(number, quota);
                    prop_assert!(place.day >= today);
                    prop_assert!(last < Some(place));
                    last = Some(place);
                    let taken = taken.entry(place.day).or_default();
                    *taken += 1;
                    prop_assert!(*taken <= u64::from(quota));
                }
            }
        }
    }
}

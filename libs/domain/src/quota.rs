//! The arithmetic of daily quotas and of the line of what waits for them.
//!
//! A quota is a rule about the present day and no list of reservations: a notification is charged when it is claimed,
//! if the day has room, and otherwise waits in line, oldest first. When its turn will come is a forecast from how many
//! wait before it, worked out whenever it is asked for, so that it tells the quota and the rate of that moment. `store`
//! does the sums of [`Budget`] in SQL, under a row lock.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

/// What was charged to a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The day.
    pub day: NaiveDate,
    /// Notifications charged to it.
    pub used: u64,
}

/// Under which rules a line moves.
#[derive(Debug, Clone, Copy)]
pub struct LineRules {
    /// Notifications a day.
    pub quota: u32,
    /// Requests a second; `None`: any.
    pub rate: Option<u32>,
    /// Where days begin and end.
    pub zone: Tz,
    /// Over which part of a day its places are given to what has waited for it.
    pub window: Duration,
    /// Whether those of the present day are: something waits since a day before, and no limit was changed on this one.
    pub spreads_today: bool,
}

impl Budget {
    /// The budget as it is on `today`. A day that has passed takes its count with it. A day that lies ahead stays: a clock
    /// that went back gives nothing away twice.
    ///
    /// `quota` is the one that the count was made under. What exceeds it are places of the days that follow, which earlier
    /// versions gave out.
    pub fn on(self, today: NaiveDate, quota: u32) -> Self {
        let days = u64::try_from((today - self.day).num_days()).unwrap_or(0);
        Self {
            day: self.day.max(today),
            used: self.used.saturating_sub(days.saturating_mul(u64::from(quota))),
        }
    }

    /// How many may be charged to `today` under `quota`, where the count so far was made under the quota `before`.
    pub fn free(self, today: NaiveDate, before: u32, quota: u32) -> u64 {
        let current = self.on(today, before);
        if current.day > today {
            return 0;
        }
        u64::from(quota).saturating_sub(current.used)
    }

    /// How much of `today` is used: as many as were charged to it, also where that is more than `quota`, which was lowered since. All of it when
    /// the day that was charged lies ahead. `before` as in [`Budget::free`].
    pub fn used_on(self, today: NaiveDate, before: u32, quota: u32) -> u64 {
        let current = self.on(today, before);
        if current.day > today {
            return quota.into();
        }
        current.used.min(before.into())
    }

    /// Charges up to `count` to `today`; returns the budget after that and how many were charged. `before` as in
    /// [`Budget::free`].
    pub fn charge(self, today: NaiveDate, before: u32, quota: u32, count: u64) -> (Self, u64) {
        let charged = count.min(self.free(today, before, quota));
        if charged == 0 {
            return (self, 0);
        }
        let current = self.on(today, before);
        let used = current.used + charged;
        (Self { used, ..current }, charged)
    }
}

impl LineRules {
    /// When the turn comes of what has `ahead` before it in line, if nothing changes; never before `now`.
    pub fn forecast(&self, budget: Budget, before: u32, ahead: u64, now: DateTime<Utc>) -> DateTime<Utc> {
        let today = day_of(now, self.zone);
        let free = budget.free(today, before, self.quota);
        let quota = u64::from(self.quota.max(1));
        let by_quota = if ahead < free && !self.spreads_today {
            now
        } else if ahead < free {
            self.opens_at(today, quota - free.min(quota) + ahead)
        } else {
            let days = i64::try_from((ahead - free) / quota).unwrap_or(i64::MAX);
            let day = TimeDelta::try_days(days)
                .and_then(|days| today.succ_opt()?.checked_add_signed(days))
                .unwrap_or(NaiveDate::MAX);
            self.opens_at(day, (ahead - free) % quota)
        };
        let by_rate = self.rate.map(|rate| {
            let millis = i64::try_from(ahead.saturating_mul(1_000) / u64::from(rate.max(1)));
            let wait = TimeDelta::try_milliseconds(millis.unwrap_or(i64::MAX)).unwrap_or(TimeDelta::MAX);
            now.checked_add_signed(wait).unwrap_or(DateTime::<Utc>::MAX_UTC)
        });
        by_quota.max(by_rate.unwrap_or(now)).max(now)
    }

    /// When a place of a day, counted from 0, is given to what waited for it: evenly over the window.
    fn opens_at(&self, day: NaiveDate, number: u64) -> DateTime<Utc> {
        let offset = self.window.mul_f64(number as f64 / f64::from(self.quota.max(1)));
        TimeDelta::from_std(offset)
            .ok()
            .and_then(|offset| start_of(day, self.zone).checked_add_signed(offset))
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// How many of the places of the day of `now` are open to what waited for them: those whose time in the window has
    /// come.
    pub fn share_open(&self, now: DateTime<Utc>) -> f64 {
        let elapsed = now - start_of(day_of(now, self.zone), self.zone);
        let elapsed = elapsed.to_std().unwrap_or_default();
        if elapsed >= self.window {
            return 1.0;
        }
        elapsed.as_secs_f64() / self.window.as_secs_f64()
    }
}

/// The first instant of a day in a time zone.
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
pub fn day_of(at: DateTime<Utc>, zone: Tz) -> NaiveDate {
    at.with_timezone(&zone).date_naive()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn day(number: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 3, number).unwrap()
    }

    fn rules(quota: u32, window: u64) -> LineRules {
        LineRules {
            quota,
            rate: None,
            zone: chrono_tz::UTC,
            window: Duration::from_secs(window),
            spreads_today: true,
        }
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn a_day_that_is_full_charges_nothing_and_the_next_one_begins_empty() {
        let fresh = Budget { day: day(1), used: 0 };
        let (full, charged) = fresh.charge(day(1), 10, 10, 25);
        assert_eq!((full.used, charged), (10, 10));
        assert_eq!(full.charge(day(1), 10, 10, 1), (full, 0));
        assert_eq!(
            full.charge(day(2), 10, 10, 3),
            (Budget { day: day(2), used: 3 }, 3)
        );
    }

    #[test]
    fn a_quota_that_is_changed_holds_for_the_same_day() {
        let used = Budget {
            day: day(1),
            used: 80,
        };
        assert_eq!(used.free(day(1), 100, 10), 0);
        assert_eq!(used.free(day(1), 100, 1_000), 920);
        assert_eq!(used.free(day(2), 100, 10), 10, "nothing is owed on the day after");
        let used_on =
            [(day(1), 10), (day(1), 1_000), (day(2), 10)].map(|(on, quota)| used.used_on(on, 100, quota));
        assert_eq!(used_on, [80, 80, 0], "what was used stays");
    }

    #[test]
    fn a_clock_that_went_back_gives_nothing_away() {
        let budget = Budget { day: day(5), used: 3 };
        assert_eq!(budget.free(day(4), 10, 10), 0);
        assert_eq!(budget.free(day(5), 10, 10), 7);
        assert_eq!([4, 5].map(|d| budget.used_on(day(d), 10, 10)), [10, 3]);
    }

    #[test]
    fn places_that_an_earlier_version_gave_out_are_kept_free() {
        let given_out = Budget {
            day: day(1),
            used: 25,
        };
        assert_eq!(
            [1, 2, 3, 4].map(|d| given_out.free(day(d), 10, 10)),
            [0, 0, 5, 10]
        );
        assert_eq!(
            [1, 2, 3, 4].map(|d| given_out.used_on(day(d), 10, 10)),
            [10, 10, 5, 0]
        );
    }

    #[test]
    fn a_forecast_counts_the_days_of_the_present_quota() {
        let full = Budget {
            day: day(1),
            used: 10,
        };
        let now = at("2026-03-01T12:00:00Z");
        let told = |quota, ahead| rules(quota, 3_600).forecast(full, 10, ahead, now).to_rfc3339();
        assert_eq!(told(10, 0), "2026-03-02T00:00:00+00:00");
        assert_eq!(told(10, 5), "2026-03-02T00:30:00+00:00");
        assert_eq!(told(10, 20), "2026-03-04T00:00:00+00:00");
        assert_eq!(
            told(1_000, 20),
            "2026-03-01T12:00:00+00:00",
            "a raised quota has room now"
        );
        assert_eq!(
            told(1, 2),
            "2026-03-04T00:00:00+00:00",
            "a lowered one takes longer"
        );
        let slow = LineRules {
            rate: Some(2),
            ..rules(1_000, 0)
        };
        assert_eq!(slow.forecast(full, 10, 20, now) - now, TimeDelta::seconds(10));
    }

    #[test]
    fn a_forecast_ends_where_time_does() {
        let now = at("2026-03-01T12:00:00Z");
        let budget = Budget { day: day(1), used: 1 };
        let far = rules(1, 60).forecast(budget, 1, u64::MAX, now);
        assert!(far > now);
    }

    #[test]
    fn a_day_opens_over_the_window_and_starts_when_it_does() {
        let zone = chrono_tz::Europe::Berlin;
        let rules = LineRules {
            zone,
            ..rules(4, 3_600)
        };
        assert_eq!(
            rules.opens_at(day(2), 0).to_rfc3339(),
            "2026-03-01T23:00:00+00:00"
        );
        assert_eq!(
            rules.opens_at(day(2), 3).to_rfc3339(),
            "2026-03-01T23:45:00+00:00"
        );
        let share = |time| rules.share_open(at(time));
        assert_eq!(share("2026-03-01T23:00:00Z"), 0.0);
        assert_eq!(share("2026-03-01T23:30:00Z"), 0.5);
        assert_eq!(share("2026-03-02T00:00:00Z"), 1.0);
        assert_eq!(share("2026-03-02T20:00:00Z"), 1.0);
        // Clocks went from 24:00 to 01:00 in Beirut that night.
        let beirut = start_of(
            NaiveDate::from_ymd_opt(2022, 3, 27).unwrap(),
            chrono_tz::Asia::Beirut,
        );
        assert_eq!(beirut.to_rfc3339(), "2022-03-26T22:00:00+00:00");
    }

    proptest! {
        /// However charges are split, days pass and quotas change, no day gets more than the greatest quota it had, and
        /// nothing is refused while the day has room.
        #[test]
        fn no_day_is_overbooked(charges in proptest::collection::vec((0_i64..3, 0_u64..40, 1_u32..20), 1..40)) {
            let mut budget = Budget { day: day(1), used: 0 };
            let (mut today, mut before, mut used, mut greatest) = (day(1), 1, 0, 0);
            for (days, count, quota) in charges {
                if days > 0 {
                    (used, greatest) = (0, 0);
                }
                today += TimeDelta::days(days);
                let (charged, granted) = budget.charge(today, before, quota, count);
                used += granted;
                greatest = quota.max(greatest);
                prop_assert!(used <= u64::from(greatest));
                prop_assert_eq!(granted, count.min(u64::from(quota).saturating_sub(used - granted)));
                if granted > 0 {
                    before = quota;
                }
                budget = charged;
            }
        }

        /// Who is further behind never goes first.
        #[test]
        fn forecasts_keep_the_order(quota in 1_u32..50, used in 0_u64..60, ahead in 0_u64..500, window in 0_u64..86_400) {
            let budget = Budget { day: day(1), used };
            let now = at("2026-03-01T05:00:00Z");
            let told = |ahead| rules(quota, window).forecast(budget, quota, ahead, now);
            prop_assert!(told(ahead) <= told(ahead + 1));
            prop_assert!(told(ahead) >= now);
        }
    }
}

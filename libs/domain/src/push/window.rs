//! When a push may be sent: a Quartz cron expression read as a set of seconds in a time zone.

use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use chrono_tz::Tz;
use croner::Cron;

use super::quartz::{self, CronError};

/// The times at which a push may be sent.
#[derive(Debug, Clone)]
pub struct SendingWindow {
    /// It is open whenever one of these says so.
    crons: Vec<Cron>,
    zone: Tz,
}

/// No matching time lies ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cron expression matches no time from {after} on")]
pub struct NoSuchWindow {
    /// Where the search began.
    pub after: DateTime<Utc>,
}

impl SendingWindow {
    /// Reads a Quartz expression of 6 or 7 fields; its times are those of `zone`.
    pub fn parse(expression: &str, zone: Tz) -> Result<Self, CronError> {
        Ok(Self {
            crons: quartz::parse(expression)?,
            zone,
        })
    }

    /// The first instant from `now` on at which sending is allowed: `now` itself within a matching second.
    ///
    /// When clocks go forward, a fixed time that is skipped happens at the end of the gap; when they go back, a fixed
    /// time happens once and a recurring one in both passes.
    pub fn opens_at_or_after(&self, now: DateTime<Utc>) -> Result<DateTime<Utc>, NoSuchWindow> {
        let second = now.trunc_subsecs(0);
        let local = second.with_timezone(&self.zone);
        let crons = self.crons.iter();
        let next = crons
            .filter_map(|cron| cron.find_next_occurrence(&local, true).ok())
            .min()
            .ok_or(NoSuchWindow { after: now })?;
        Ok(next.with_timezone(&Utc).max(now))
    }

    /// Whether a push may be sent at `now`: some time within the last `grace` matches. The grace lets a push that
    /// entered the queue within a one-second window leave it after the second has passed.
    pub fn is_open(&self, now: DateTime<Utc>, grace: Duration) -> bool {
        let since = TimeDelta::from_std(grace)
            .ok()
            .and_then(|g| now.checked_sub_signed(g))
            .unwrap_or(now);
        self.opens_at_or_after(since).is_ok_and(|opened| opened <= now)
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike as _, NaiveDate, TimeZone, Weekday};

    use super::*;

    fn utc(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn next(expression: &str, zone: Tz, from: &str) -> String {
        let window = SendingWindow::parse(expression, zone).unwrap();
        window.opens_at_or_after(utc(from)).map_or_else(
            |_| "never".to_owned(),
            |at| {
                at.with_timezone(&zone)
                    .format("%a %Y-%m-%d %H:%M:%S%:z")
                    .to_string()
            },
        )
    }

    #[test]
    fn windows_of_the_field() {
        for (expression, from, expected) in [
            (
                "0 0/1 * 1/1 * ? *",
                "2026-11-21T05:00:01Z",
                "Sat 2026-11-21 05:01:00+00:00",
            ),
            (
                "* * 9-17 ? * MON-FRI",
                "2026-11-20T17:59:59Z",
                "Fri 2026-11-20 17:59:59+00:00",
            ),
            (
                "* * 9-17 ? * MON-FRI",
                "2026-11-20T18:00:00Z",
                "Mon 2026-11-23 09:00:00+00:00",
            ),
            (
                "* * 9-17 ? * 2-6",
                "2026-11-20T18:00:00Z",
                "Mon 2026-11-23 09:00:00+00:00",
            ),
            (
                "0 0 12 L * ?",
                "2027-02-01T00:00:00Z",
                "Sun 2027-02-28 12:00:00+00:00",
            ),
            (
                "0 0 12 L * ?",
                "2028-02-01T00:00:00Z",
                "Tue 2028-02-29 12:00:00+00:00",
            ),
            (
                "0 0 12 LW * ?",
                "2027-01-31T13:00:00Z",
                "Fri 2027-02-26 12:00:00+00:00",
            ),
            (
                "0 0 12 15W * ?",
                "2026-11-01T00:00:00Z",
                "Mon 2026-11-16 12:00:00+00:00",
            ),
            (
                "0 0 12 ? * 6L",
                "2026-11-01T00:00:00Z",
                "Fri 2026-11-27 12:00:00+00:00",
            ),
            (
                "0 0 12 ? * FRIL",
                "2026-11-01T00:00:00Z",
                "Fri 2026-11-27 12:00:00+00:00",
            ),
            (
                "0 0 12 ? * 6#3",
                "2026-11-01T00:00:00Z",
                "Fri 2026-11-20 12:00:00+00:00",
            ),
            (
                "0 0 12 ? * MON#5",
                "2026-12-01T00:00:00Z",
                "Mon 2027-03-29 12:00:00+00:00",
            ),
            (
                "0 0 12 ? * L",
                "2026-11-15T00:00:00Z",
                "Sat 2026-11-21 12:00:00+00:00",
            ),
            (
                "0 0 12 ? * SAT-SUN",
                "2026-11-16T00:00:00Z",
                "Sat 2026-11-21 12:00:00+00:00",
            ),
            (
                "0 0 12 ? * FRI-MON",
                "2026-11-23T13:00:00Z",
                "Fri 2026-11-27 12:00:00+00:00",
            ),
            (
                "0 0 22-2 ? * *",
                "2026-11-21T02:30:00Z",
                "Sat 2026-11-21 22:00:00+00:00",
            ),
            (
                "0 0 0 ? NOV-FEB * 2027",
                "2026-11-21T00:00:00Z",
                "Fri 2027-01-01 00:00:00+00:00",
            ),
            (
                "0 0 12 29 2 ?",
                "2026-11-21T00:00:00Z",
                "Tue 2028-02-29 12:00:00+00:00",
            ),
            (
                "0 0 12 * * *",
                "2026-11-21T00:00:00Z",
                "Sat 2026-11-21 12:00:00+00:00",
            ),
            // What Quartz documents: three days before the last one, and the weekday nearest to that.
            (
                "0 0 12 L-3 * ?",
                "2027-01-01T00:00:00Z",
                "Thu 2027-01-28 12:00:00+00:00",
            ),
            (
                "0 0 12 L-3 * ?",
                "2027-01-28T12:00:01Z",
                "Thu 2027-02-25 12:00:00+00:00",
            ),
            (
                "0 0 12 L-3 2 ?",
                "2027-03-01T00:00:00Z",
                "Sat 2028-02-26 12:00:00+00:00",
            ),
            (
                "0 0 12 L-3W 2 ?",
                "2027-03-01T00:00:00Z",
                "Fri 2028-02-25 12:00:00+00:00",
            ),
            (
                "0 0 12 1 12 ? 2026",
                "2026-11-30T06:00:00Z",
                "Tue 2026-12-01 12:00:00+00:00",
            ),
            ("0 0 12 1 12 ? 2026", "2026-12-01T12:00:01Z", "never"),
            (
                "0 0 12 l-3w 3 ? 2027",
                "2027-01-01T00:00:00Z",
                "Mon 2027-03-29 12:00:00+00:00",
            ),
            (
                "0 0 12 L-30 4-6 ?",
                "2027-04-01T00:00:00Z",
                "Sat 2027-05-01 12:00:00+00:00",
            ),
            (
                "0 0 12 L-30W 5 ?",
                "2027-04-01T00:00:00Z",
                "Mon 2027-05-03 12:00:00+00:00",
            ),
            ("0 0 12 L-29 2 ?", "2026-11-21T00:00:00Z", "never"),
            ("0 0 12 30 2 ?", "2026-11-21T00:00:00Z", "never"),
            ("0 0 12 ? * MON 2020", "2026-11-21T00:00:00Z", "never"),
        ] {
            assert_eq!(
                next(expression, Tz::UTC, from),
                expected,
                "{expression} from {from}"
            );
        }
    }

    #[test]
    fn a_time_that_daylight_saving_skips_happens_at_the_end_of_the_gap() {
        let zone = Tz::Europe__Stockholm;
        assert_eq!(
            next("0 30 2 * * ?", zone, "2026-03-28T12:00:00Z"),
            "Sun 2026-03-29 03:00:00+02:00"
        );
        assert_eq!(
            next("* * 2 * * ?", zone, "2026-03-28T12:00:00Z"),
            "Mon 2026-03-30 02:00:00+02:00"
        );
    }

    #[test]
    fn a_time_that_daylight_saving_repeats_happens_once_unless_it_recurs() {
        let zone = Tz::Europe__Stockholm;
        assert_eq!(
            next("0 30 2 * * ?", zone, "2026-10-24T22:00:00Z"),
            "Sun 2026-10-25 02:30:00+02:00"
        );
        assert_eq!(
            next("0 30 2 * * ?", zone, "2026-10-25T00:30:01Z"),
            "Mon 2026-10-26 02:30:00+01:00"
        );
        assert_eq!(
            next("* * 2 ? * *", zone, "2026-10-25T01:10:00Z"),
            "Sun 2026-10-25 02:10:00+01:00"
        );
    }

    #[test]
    fn a_window_in_a_time_zone_follows_the_zone() {
        let window = SendingWindow::parse("* * 9-17 ? * MON-FRI", Tz::America__New_York).unwrap();
        let open = |text| window.is_open(utc(text), Duration::ZERO);
        assert!(!open("2026-11-20T13:59:59Z") && open("2026-11-20T14:00:00Z"));
        assert!(open("2026-11-20T22:59:59.999Z") && !open("2026-11-20T23:00:00Z"));
    }

    #[test]
    fn the_grace_keeps_a_one_second_window_open() {
        let window = SendingWindow::parse("0 0 12 L * ?", Tz::UTC).unwrap();
        let noon = Utc.with_ymd_and_hms(2026, 11, 30, 12, 0, 0).unwrap();
        let grace = Duration::from_secs(60);
        assert!(window.is_open(noon + TimeDelta::milliseconds(999), Duration::ZERO));
        assert!(!window.is_open(noon + TimeDelta::seconds(1), Duration::ZERO));
        assert!(window.is_open(noon + TimeDelta::seconds(60), grace));
        assert!(!window.is_open(noon + TimeDelta::seconds(62), grace));
        assert!(!window.is_open(noon - TimeDelta::milliseconds(1), grace));
    }

    proptest::proptest! {
        /// Days counted from the end of the month, against a walk over the calendar.
        #[test]
        fn an_offset_from_the_last_day_is_the_day_that_a_calendar_shows(
            offset in 0_u32..=30, weekday: bool, days in 0_i64..36_500,
        ) {
            let nearest = if weekday { "W" } else { "" };
            let window = SendingWindow::parse(&format!("0 0 12 L-{offset}{nearest} * ?"), Tz::UTC).unwrap();
            let from = utc("1990-01-01T12:00:00Z") + TimeDelta::days(days);
            let expected = from.date_naive().iter_days().take(100).find(|day| is_from_the_end(*day, offset, weekday));
            let opened = window.opens_at_or_after(from).ok().map(|at| at.date_naive());
            proptest::prop_assert_eq!(opened, expected);
        }
    }

    /// Whether a day is the one that is so far from the last day of its month, or the weekday nearest to that one.
    fn is_from_the_end(day: NaiveDate, offset: u32, weekday: bool) -> bool {
        let length = u32::from(day.num_days_in_month());
        let Some(meant) = length.checked_sub(offset).and_then(|number| day.with_day(number)) else {
            return false;
        };
        if !weekday {
            return day == meant;
        }
        let nearest = match meant.weekday() {
            Weekday::Sat if meant.day() == 1 => meant + TimeDelta::days(2),
            Weekday::Sat => meant - TimeDelta::days(1),
            Weekday::Sun if meant.day() == length => meant - TimeDelta::days(2),
            Weekday::Sun => meant + TimeDelta::days(1),
            _ => meant,
        };
        day == nearest
    }

    #[test]
    fn now_is_kept_to_the_fraction_when_it_matches() {
        let window = SendingWindow::parse("* * * * * ?", Tz::UTC).unwrap();
        let now = utc("2026-11-21T05:00:00.123456Z");
        assert_eq!(window.opens_at_or_after(now), Ok(now));
    }
}

//! Times as people write them and as tables show them, and ages: `90s`, `30m`, `2h`, `3d`, and as they are printed, `2 h 5 min`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use domain::clock::{Clock as _, SystemClock};

/// A time as RFC 3339 has it, as tables show it, or a day, which begins at midnight; in UTC where nothing else is said.
pub(crate) fn time(text: &str) -> Result<DateTime<Utc>, &'static str> {
    const FORM: &str =
        "a time is written like 2026-11-21T12:00:00Z, \"2026-11-21 12:00:00\" (UTC) or 2026-11-21";
    let text = text.trim();
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.to_utc());
    }
    let bare = text.strip_suffix("UTC").or_else(|| text.strip_suffix('Z'));
    let bare = bare.unwrap_or(text).trim_end();
    let formats = [
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M",
        "%Y-%m-%dT%H:%M",
    ];
    let times = formats
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(bare, format).ok());
    let day = || NaiveDate::parse_from_str(bare, "%Y-%m-%d").map(|day| day.and_time(NaiveTime::MIN));
    let time = times.or_else(|| day().ok()).ok_or(FORM)?;
    Ok(time.and_utc())
}

/// A time, one without its day as `tail` and `listen` print it, one without its year as the console shows it, or how long ago it was.
pub(crate) fn time_or_age(text: &str) -> Result<DateTime<Utc>, &'static str> {
    const FORM: &str = "write an age such as 2h or 3d, or a time such as 2026-11-21T12:00:00Z";
    let now = SystemClock.now();
    let age = || text.trim().parse::<Age>().ok();
    let known = time(text).ok().or_else(|| time_of_day(text, now));
    let known = known.or_else(|| time_of_year(text, now));
    known.or_else(|| Some(age()?.before(now))).ok_or(FORM)
}

/// A time that is given as one, or by how long before `now` it was.
pub(crate) fn at_or_ago(
    at: Option<DateTime<Utc>>,
    age: Option<Age>,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    at.or_else(|| age.map(|age| age.before(now)))
}

/// A time without its day: when it was last so late, in UTC.
fn time_of_day(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let text = text.trim();
    let bare = text.strip_suffix('Z').unwrap_or(text);
    let formats = ["%H:%M:%S%.f", "%H:%M"];
    let time = formats
        .iter()
        .find_map(|format| NaiveTime::parse_from_str(bare, format).ok())?;
    let today = now.date_naive().and_time(time).and_utc();
    if today <= now {
        return Some(today);
    }
    today.checked_sub_signed(TimeDelta::days(1))
}

/// A time without its year, such as `Mon 30 Nov, 06:13:31`: when it was last that day, in UTC. The clock of a console may be ahead, or in another zone,
/// by a day at most.
fn time_of_year(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let text = text.trim();
    let bare = text.strip_suffix("UTC").unwrap_or(text).trim_end();
    let latest = now.checked_add_signed(TimeDelta::days(1))?;
    // A day of the week that is not that of the date is refused.
    let formats = [
        "%Y %a %d %b, %H:%M:%S",
        "%Y %a %d %b, %H:%M",
        "%Y %d %b, %H:%M:%S",
        "%Y %d %b, %H:%M",
    ];
    let years = [now.year() + 1, now.year(), now.year() - 1];
    years.into_iter().find_map(|year| {
        let whole = format!("{year} {bare}");
        let time = formats
            .iter()
            .find_map(|format| NaiveDateTime::parse_from_str(&whole, format).ok())?
            .and_utc();
        (time <= latest).then_some(time)
    })
}

/// So many seconds as tables show a length of time, in its two largest units.
pub(crate) fn length(seconds: u64) -> String {
    match (
        seconds / 86_400,
        seconds / 3_600 % 24,
        seconds / 60 % 60,
        seconds % 60,
    ) {
        (0, 0, 0, s) => format!("{s} s"),
        (0, 0, m, s) => format!("{m} min {s} s"),
        (0, h, m, _) => format!("{h} h {m} min"),
        (d, h, _, _) => format!("{d} d {h} h"),
    }
}

/// How long ago something was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Age(TimeDelta);

impl Age {
    /// That long before `now`.
    pub(crate) fn before(self, now: DateTime<Utc>) -> DateTime<Utc> {
        let before = now.checked_sub_signed(self.0);
        before.unwrap_or_default().max(DateTime::UNIX_EPOCH)
    }
}

impl Age {
    /// That long after `now`, unless that is too far away to be a time.
    pub(crate) fn after(self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        now.checked_add_signed(self.0)
    }

    /// As long as it is.
    pub(crate) fn duration(self) -> Duration {
        self.0.to_std().unwrap_or_default()
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.num_seconds();
        let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
        let (length, unit) = units
            .into_iter()
            .find(|(length, _)| seconds > 0 && seconds % length == 0)
            .unwrap_or((1, "s"));
        write!(f, "{}{unit}", seconds / length)
    }
}

impl FromStr for Age {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str =
            "an age is a number with a unit, such as 90s, 30m, 2h or 3d, or several such as \"2 h 5 min\"";
        let mut rest = text.trim();
        let (mut seconds, mut before) = (0, i64::MAX);
        loop {
            let count: u32 = leading(&mut rest, |c| c.is_ascii_digit())
                .parse()
                .map_err(|_| FORM)?;
            let unit = leading(&mut rest, |c| c.is_ascii_alphabetic());
            let unit = seconds_of(unit).filter(|unit| *unit < before).ok_or(FORM)?;
            seconds += i64::from(count) * unit;
            before = unit;
            if rest.is_empty() {
                return Ok(Self(TimeDelta::seconds(seconds)));
            }
        }
    }
}

/// Takes the characters at the beginning for which `is` holds, with the blanks behind them.
fn leading<'a>(rest: &mut &'a str, is: fn(char) -> bool) -> &'a str {
    let text = *rest;
    let end = text.find(|c: char| !is(c)).unwrap_or(text.len());
    let (taken, left) = text.split_at(end);
    *rest = left.trim_start();
    taken
}

/// How many seconds a unit has, in one letter as it is typed, or as lengths of time are printed.
fn seconds_of(unit: &str) -> Option<i64> {
    match unit {
        "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3_600),
        "d" | "day" | "days" => Some(86_400),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_is_shown() {
        let noon = Ok("2026-11-21T12:00:00Z".parse().unwrap());
        for text in [
            "2026-11-21T12:00:00Z",
            "2026-11-21T13:00:00+01:00",
            "2026-11-21 12:00:00",
            "2026-11-21 12:00:00 UTC",
            "2026-11-21 12:00",
            " 2026-11-21T12:00:00 ",
        ] {
            assert_eq!(time(text), noon, "{text}");
        }
        assert_eq!(time("2026-11-21"), Ok("2026-11-21T00:00:00Z".parse().unwrap()));
        for none in ["", "yesterday", "2026-13-01", "12:00", "2026-11-21 25:00:00"] {
            assert!(time(none).is_err(), "{none:?}");
        }
    }

    #[test]
    fn a_time_may_be_told_by_how_long_ago_it_was() {
        assert_eq!(time_or_age("2026-11-21 12:00"), time("2026-11-21T12:00:00Z"));
        let (from, to) = (SystemClock.now(), time_or_age("3d").unwrap());
        let three_days = from - to..=SystemClock.now() - to;
        assert!(three_days.contains(&TimeDelta::days(3)), "{three_days:?}");
        for none in ["", "3", "yesterday", "3 weeks"] {
            assert!(time_or_age(none).is_err(), "{none:?}");
        }
    }

    #[test]
    fn a_time_without_its_day_is_the_last_one() {
        let now = "2026-11-21T13:00:00Z".parse().unwrap();
        for (text, at) in [
            ("12:00:00.250Z", "2026-11-21T12:00:00.250Z"),
            ("12:00", "2026-11-21T12:00:00Z"),
            ("13:00:01", "2026-11-20T13:00:01Z"),
        ] {
            assert_eq!(time_of_day(text, now), at.parse().ok(), "{text}");
        }
        for none in ["", "25:00", "noon"] {
            assert_eq!(time_of_day(none, now), None, "{none:?}");
        }
    }

    #[test]
    fn a_time_without_its_year_is_the_last_one() {
        let now = "2026-11-30T13:00:00Z".parse().unwrap();
        for (text, at) in [
            ("Mon 30 Nov, 06:13:31", "2026-11-30T06:13:31Z"),
            ("30 Nov, 06:13 UTC", "2026-11-30T06:13:00Z"),
            ("Sun 1 Nov, 06:13", "2026-11-01T06:13:00Z"),
            ("Mon 30 Nov, 15:13:31", "2026-11-30T15:13:31Z"),
            ("Wed 31 Dec, 06:13:31", "2025-12-31T06:13:31Z"),
        ] {
            assert_eq!(time_of_year(text, now), at.parse().ok(), "{text}");
        }
        let eve = "2026-12-31T23:30:00Z".parse().unwrap();
        let ahead = time_of_year("Fri 1 Jan, 00:29", eve);
        assert_eq!(
            ahead,
            "2027-01-01T00:29:00Z".parse().ok(),
            "of a console that is an hour ahead"
        );
        for none in ["", "Tue 30 Nov, 06:13:31", "31 Nov, 06:13", "Mon 30 Nov"] {
            assert_eq!(time_of_year(none, now), None, "{none:?}");
        }
    }

    #[test]
    fn an_age_is_a_number_with_a_unit() {
        let seconds = |text: &str| text.parse::<Age>().map(|age| age.0.num_seconds());
        assert_eq!(
            ["90s", "30m", "2h", "3d"].map(seconds),
            [Ok(90), Ok(1_800), Ok(7_200), Ok(259_200)]
        );
        for text in ["0s", "90s", "30m", "2h", "3d"] {
            assert_eq!(text.parse::<Age>().unwrap().to_string(), text);
        }
        let noon: DateTime<Utc> = "2026-11-21T12:00:00Z".parse().unwrap();
        let after = |text: &str| text.parse::<Age>().unwrap().after(noon);
        assert_eq!(after("2h"), Some(noon + TimeDelta::hours(2)));
        assert_eq!(after("4000000000d"), None);
        for none in [
            "", "h", "2", "-2h", "2w", "2.5h", "2 h 5", "5m2h", "1h1h", "2 h ago",
        ] {
            assert!(seconds(none).is_err(), "{none:?}");
        }
    }

    #[test]
    fn an_age_is_read_as_a_length_of_time_is_printed() {
        for (text, seconds) in [
            ("45 s", 45),
            ("3 min", 180),
            ("2 h 5 min", 7_500),
            ("1 day 2 h", 93_600),
            ("2 days", 172_800),
            (" 1h30m ", 5_400),
        ] {
            let age = text.parse::<Age>().map(|age| age.0.num_seconds());
            assert_eq!(age, Ok(seconds), "{text}");
        }
    }

    #[test]
    fn what_was_before_all_times_was_at_the_first() {
        let age: Age = "4294967295d".parse().unwrap();
        assert_eq!(age.before(DateTime::UNIX_EPOCH), DateTime::UNIX_EPOCH);
        let age: Age = "3650000d".parse().unwrap();
        let now = DateTime::from_timestamp_secs(1_795_000_000).unwrap();
        assert_eq!(age.before(now), DateTime::UNIX_EPOCH);
    }
}

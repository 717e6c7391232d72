//! Ages as people write them: `90s`, `30m`, `2h`, `3d`.

use std::str::FromStr;

use chrono::{DateTime, TimeDelta, Utc};

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

impl FromStr for Age {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "an age is a number with a unit, such as 90s, 30m, 2h or 3d";
        let start = text.char_indices().last().map_or(0, |(index, _)| index);
        let (digits, unit) = text.split_at(start);
        let count: u32 = digits.parse().map_err(|_| FORM)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return Err(FORM),
        };
        Ok(Self(TimeDelta::seconds(i64::from(count) * seconds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_with_a_unit() {
        let seconds = |text: &str| text.parse::<Age>().map(|age| age.0.num_seconds());
        assert_eq!(
            ["90s", "30m", "2h", "3d"].map(seconds),
            [Ok(90), Ok(1_800), Ok(7_200), Ok(259_200)]
        );
        for none in ["", "h", "2", "-2h", "2w", "2.5h", "2 h"] {
            assert!(seconds(none).is_err(), "{none:?}");
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

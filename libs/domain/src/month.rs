//! Months as ranges of identifiers. A version 7 UUID starts with its creation time in milliseconds, so the tables
//! that are keyed by one can be partitioned by month without a second key column.

use chrono::{DateTime, Datelike, Months, NaiveDate, Utc};
use uuid::Uuid;

/// A calendar month in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(NaiveDate);

impl Month {
    /// The month that contains `at`.
    pub fn containing(at: DateTime<Utc>) -> Self {
        let day = at.date_naive();
        Self(day.with_day(1).expect("invariant: every month has a first day"))
    }

    /// The month `months` later. Saturates at the end of the calendar.
    pub fn plus(self, months: u32) -> Self {
        Self(self.0.checked_add_months(Months::new(months)).unwrap_or(self.0))
    }

    /// The month `months` earlier. Saturates at the start of the calendar.
    pub fn minus(self, months: u32) -> Self {
        Self(self.0.checked_sub_months(Months::new(months)).unwrap_or(self.0))
    }

    /// The first day.
    pub fn first_day(self) -> NaiveDate {
        self.0
    }

    /// The smallest identifier that this month can hold: its start in milliseconds, all other bits zero.
    pub fn first_id(self) -> Uuid {
        let start = self.0.and_time(chrono::NaiveTime::MIN).and_utc();
        let millis = u128::try_from(start.timestamp_millis()).unwrap_or(0);
        Uuid::from_u128(millis << 80)
    }

    /// The suffix of a partition's name, `y2026m11`.
    pub fn suffix(self) -> String {
        format!("y{:04}m{:02}", self.0.year(), self.0.month())
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;
    use crate::push::PushId;

    fn at(year: i32, month: u32, day: u32) -> DateTime<Utc> {
        Utc.with_ymd_and_hms(year, month, day, 23, 59, 59).unwrap()
    }

    #[test]
    fn an_id_lies_between_the_bounds_of_its_month() {
        for instant in [at(2026, 1, 1), at(2026, 2, 28), at(2028, 2, 29), at(2026, 12, 31)] {
            let month = Month::containing(instant);
            let id = PushId::at(instant).uuid();
            assert!(
                month.first_id() <= id && id < month.plus(1).first_id(),
                "{instant}"
            );
        }
    }

    #[test]
    fn months_follow_each_other_across_the_year() {
        let december = Month::containing(at(2026, 12, 31));
        assert_eq!(december.plus(1).suffix(), "y2027m01");
        assert_eq!(december.minus(12).suffix(), "y2025m12");
        assert_eq!(december.plus(1).minus(1), december);
    }
}

//! `L-3` and `L-3W` of Quartz: a day that is counted from the end of the month, and the weekday nearest to it.
//!
//! Which day that is depends on how long the month is, so that one expression becomes several, one for each length of
//! month: 31 days, 30, and February with and without a leap day. A month that has no such day has no window.

/// Furthest from the last day that a month of 31 days has.
const OFFSET_MAX: u16 = 30;
/// The months of 31 days and of 30.
const LONG: &[u16] = &[1, 3, 5, 7, 8, 10, 12];
const SHORT: &[u16] = &[4, 6, 9, 11];
const FEBRUARY: &[u16] = &[2];
/// Years that an expression can name.
const YEARS: std::ops::RangeInclusive<u16> = 1970..=2099;

/// A day of the month that is counted from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MonthEnd {
    offset: u16,
    nearest_weekday: bool,
}

/// The days, months and years of one expression.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dates {
    pub(super) day: String,
    pub(super) months: String,
    pub(super) years: String,
}

impl MonthEnd {
    /// Reads `L-3` or `L-3W`; `None` for what does not begin as these do.
    pub(super) fn read(part: &str) -> Option<Result<Self, String>> {
        let rest = part.strip_prefix("L-")?;
        let (digits, nearest_weekday) = match rest.strip_suffix('W') {
            Some(digits) => (digits, true),
            None => (rest, false),
        };
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let offset = digits
            .parse()
            .ok()
            .filter(|offset| plain && *offset <= OFFSET_MAX);
        Some(match offset {
            Some(offset) => Ok(Self {
                offset,
                nearest_weekday,
            }),
            None => Err(format!(
                "the offset from the last day of the month must be a number from 0 to {OFFSET_MAX}"
            )),
        })
    }

    /// What it means in each length of month, of these months and years as they were rewritten: a list of numbers, or `*`.
    pub(super) fn dates(self, months: &str, years: &str) -> Vec<Dates> {
        let is_leap =
            |year: &u16| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let leap: Vec<u16> = YEARS.filter(is_leap).collect();
        let common: Vec<u16> = YEARS.filter(|year| !is_leap(year)).collect();
        [
            (31, LONG, None),
            (30, SHORT, None),
            (29, FEBRUARY, Some(leap)),
            (28, FEBRUARY, Some(common)),
        ]
        .into_iter()
        .filter_map(|(length, of_length, in_years)| {
            let day = u16::checked_sub(length, self.offset).filter(|day| *day > 0)?;
            let years = match in_years {
                Some(in_years) => of_both(years, &in_years)?,
                None => years.to_owned(),
            };
            Some(Dates {
                day: format!("{day}{}", if self.nearest_weekday { "W" } else { "" }),
                months: of_both(months, of_length)?,
                years,
            })
        })
        .collect()
    }
}

/// What of a rewritten field is among these values; `None` when nothing is.
fn of_both(field: &str, values: &[u16]) -> Option<String> {
    let wanted: Vec<u16> = field.split(',').filter_map(|value| value.parse().ok()).collect();
    let both = values
        .iter()
        .filter(|value| field == "*" || wanted.contains(value));
    let both: Vec<String> = both.map(u16::to_string).collect();
    (!both.is_empty()).then(|| both.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day_and_months(part: &str, months: &str, years: &str) -> Vec<(String, String)> {
        let dates = MonthEnd::read(part).unwrap().unwrap().dates(months, years);
        dates.into_iter().map(|dates| (dates.day, dates.months)).collect()
    }

    #[test]
    fn a_month_that_has_no_such_day_has_no_window() {
        let of_30 = day_and_months("L-30", "*", "*");
        assert_eq!(of_30, [("1".to_owned(), "1,3,5,7,8,10,12".to_owned())]);
        assert!(day_and_months("L-29", "2", "*").is_empty());
        assert!(day_and_months("L-28W", "2", "2027,2029").is_empty());
        assert_eq!(
            day_and_months("L-28W", "2", "2027,2028"),
            [("1W".to_owned(), "2".to_owned())]
        );
    }

    #[test]
    fn what_is_no_offset_is_told() {
        for part in ["L-", "L-W", "L-31", "L-3X", "L-+3", "L--1", "L-3WW"] {
            let error = MonthEnd::read(part).unwrap().unwrap_err();
            assert!(error.contains("0 to 30"), "{part}: {error}");
        }
        for part in ["L", "LW", "3L", "LW-3"] {
            assert_eq!(MonthEnd::read(part), None, "{part}");
        }
    }
}

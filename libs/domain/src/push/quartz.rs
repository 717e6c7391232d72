//! Reads Quartz cron expressions: names the field, the column and the reason when one is wrong, and rewrites what is
//! right into the dialect of the evaluating library.
//!
//! The two dialects differ in what they take (`0/5`, ranges that wrap around, `L` for Saturday) more than in what
//! they mean, so the rewriting is by field and textual; when a time matches is decided by the library alone. Where Quartz
//! says more than the library can in one expression (`L-3`), it becomes several.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

use super::month_end::{Dates, MonthEnd};

/// Why a text is not a Quartz cron expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// The wrong number of fields.
    #[error(
        "it has {}, but must have 6 or 7: second minute hour day-of-month month day-of-week [year]",
        crate::counted::of(*found as u64, "field", "fields")
    )]
    FieldCount {
        /// How many there are.
        found: usize,
    },
    /// One field cannot be read.
    #[error("column {column}, field {field}: {reason}")]
    Field {
        /// Where the part stands that is wrong, in characters from 1.
        column: usize,
        /// The field's name.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Both day fields restrict.
    #[error("day-of-month and day-of-week are both given; put ? into one of them")]
    BothDays,
    /// The expression is right by field, but was not understood as a whole.
    #[error("{reason}")]
    Whole {
        /// The library's reason.
        reason: String,
    },
}

struct Field {
    name: &'static str,
    min: u16,
    max: u16,
    names: &'static [&'static str],
}

impl Field {
    /// How many values it can take.
    fn span(&self) -> u16 {
        self.max - self.min + 1
    }
}

const MONTHS: &[&str] = &[
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const DAY_OF_MONTH: usize = 3;
const MONTH: usize = 4;
const DAY_OF_WEEK: usize = 5;
const YEAR: usize = 6;

const FIELDS: [Field; 7] = [
    Field {
        name: "second",
        min: 0,
        max: 59,
        names: &[],
    },
    Field {
        name: "minute",
        min: 0,
        max: 59,
        names: &[],
    },
    Field {
        name: "hour",
        min: 0,
        max: 23,
        names: &[],
    },
    Field {
        name: "day-of-month",
        min: 1,
        max: 31,
        names: &[],
    },
    Field {
        name: "month",
        min: 1,
        max: 12,
        names: MONTHS,
    },
    Field {
        name: "day-of-week",
        min: 1,
        max: 7,
        names: WEEKDAYS,
    },
    Field {
        name: "year",
        min: 1970,
        max: 2099,
        names: &[],
    },
];

/// Reads a Quartz expression of 6 or 7 fields. A time matches when it matches one of what is returned; of nothing when no
/// month has the day that it names.
pub(super) fn parse(expression: &str) -> Result<Vec<Cron>, CronError> {
    let upper = expression.to_ascii_uppercase();
    let fields: Vec<(usize, &str)> = split_with_columns(&upper, char::is_whitespace, 1)
        .filter(|(_, field)| !field.is_empty())
        .collect();
    if !(6..=7).contains(&fields.len()) {
        return Err(CronError::FieldCount { found: fields.len() });
    }
    let rewritten = fields
        .iter()
        .enumerate()
        .map(|(index, (column, text))| rewrite_field(index, *column, text))
        .collect::<Result<Vec<_>, _>>()?;
    check_days(
        fields[DAY_OF_MONTH].1,
        fields[DAY_OF_WEEK].1,
        fields[DAY_OF_WEEK].0,
    )?;
    let parser = CronParser::builder()
        .seconds(Seconds::Required)
        .year(Year::Optional)
        .alternative_weekdays(true)
        .build();
    let evaluated = |fields: &[String]| {
        let parsed = parser.parse(&fields.join(" "));
        parsed.map_err(|error| CronError::Whole {
            reason: error.to_string(),
        })
    };
    let Some(Ok(month_end)) = MonthEnd::read(fields[DAY_OF_MONTH].1) else {
        return Ok(vec![evaluated(&rewritten)?]);
    };
    let years = rewritten.get(YEAR).map_or("*", String::as_str);
    let dates = month_end.dates(&rewritten[MONTH], years).into_iter();
    dates.map(|dates| evaluated(&with(&rewritten, dates))).collect()
}

/// The fields with other days, months and years.
fn with(fields: &[String], Dates { day, months, years }: Dates) -> Vec<String> {
    let mut changed = fields.to_vec();
    changed.resize(FIELDS.len(), String::new());
    changed[DAY_OF_MONTH] = day;
    changed[MONTH] = months;
    changed[YEAR] = years;
    changed
}

/// Quartz wants `?` in exactly one of the two. A `*` there restricts nothing, so it is taken as well: what the
/// expression means is plain.
fn check_days(day_of_month: &str, day_of_week: &str, column: usize) -> Result<(), CronError> {
    let open = |text| matches!(text, "?" | "*");
    if day_of_month == "?" && day_of_week == "?" {
        let reason = "? stands in both day fields, but may only stand in one".to_owned();
        return Err(CronError::Field {
            column,
            field: FIELDS[DAY_OF_WEEK].name,
            reason,
        });
    }
    if open(day_of_month) || open(day_of_week) {
        Ok(())
    } else {
        Err(CronError::BothDays)
    }
}

/// Splits at each separator and gives every part with its column, the first being `first_column`. Empty parts are kept.
fn split_with_columns(
    text: &str,
    separator: impl Fn(char) -> bool,
    first_column: usize,
) -> impl Iterator<Item = (usize, &str)> {
    text.split(separator).scan(first_column, |column, part| {
        let start = *column;
        *column += part.chars().count() + 1;
        Some((start, part))
    })
}

fn rewrite_field(index: usize, column: usize, text: &str) -> Result<String, CronError> {
    let field = &FIELDS[index];
    let fail = |column, reason| CronError::Field {
        column,
        field: field.name,
        reason,
    };
    let parts: Vec<_> = split_with_columns(text, |c| c == ',', column).collect();
    let rewritten = parts
        .iter()
        .map(|(column, part)| {
            rewrite_part(index, part, parts.len() == 1).map_err(|reason| fail(*column, reason))
        })
        .collect::<Result<Vec<_>, _>>()?;
    // A part that restricts nothing leaves nothing for the others to restrict, and the library takes no `*` in a list.
    if rewritten.iter().any(|part| part == "*") {
        return Ok("*".to_owned());
    }
    Ok(rewritten.join(","))
}

fn rewrite_part(index: usize, part: &str, alone: bool) -> Result<String, String> {
    let field = &FIELDS[index];
    let days = index == DAY_OF_MONTH || index == DAY_OF_WEEK;
    match part {
        "" => return Err("a part of the list is empty".to_owned()),
        "*" if alone => return Ok("*".to_owned()),
        "?" if alone && days => return Ok("*".to_owned()),
        "?" => return Err("? may only stand alone in day-of-month or day-of-week".to_owned()),
        "*" => return Err("* may not be part of a list".to_owned()),
        "L" | "LW" if index == DAY_OF_MONTH && alone => return Ok(part.to_owned()),
        "L" if index == DAY_OF_WEEK && alone => return Ok(field.max.to_string()),
        "L" | "LW" if days => return Err(format!("{part} must stand alone in its field")),
        _ => {}
    }
    if let (DAY_OF_MONTH, Some(month_end)) = (index, MonthEnd::read(part)) {
        return match month_end {
            Ok(_) if alone => Ok(part.to_owned()),
            Ok(_) => Err(format!("{part} must stand alone in its field")),
            Err(reason) => Err(reason),
        };
    }
    if let (DAY_OF_MONTH, Some(day)) = (index, part.strip_suffix('W')) {
        return Ok(format!("{}W", value(field, day)?));
    }
    if let (DAY_OF_WEEK, Some((day, nth))) = (index, part.split_once('#')) {
        let nth = nth.parse::<u8>().ok().filter(|n| (1..=5).contains(n));
        let nth = nth.ok_or_else(|| "the number after # must be 1 to 5".to_owned())?;
        return Ok(format!("{}#{nth}", value(field, day)?));
    }
    if let (DAY_OF_WEEK, Some(day)) = (index, part.strip_suffix('L')) {
        return Ok(format!("{}#L", value(field, day)?));
    }
    rewrite_range(field, part)
}

/// `5`, `5-9`, `*/5`, `5/5` or `5-9/5`. A range may wrap around.
fn rewrite_range(field: &Field, part: &str) -> Result<String, String> {
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => (range, Some(read_step(field, step)?)),
        None => (part, None),
    };
    let (first, last) = match (range.split_once('-'), step) {
        _ if range == "*" => (field.min, field.max),
        (Some((first, last)), _) => (value(field, first)?, value(field, last)?),
        (None, Some(_)) => (value(field, range)?, field.max),
        (None, None) => return value(field, range).map(|v| v.to_string()),
    };
    let values = list(field, first, last, step.unwrap_or(1));
    // The library joins two restricted day fields with OR, so a list that restricts nothing must not look like one.
    Ok(if values.len() == usize::from(field.span()) {
        "*".to_owned()
    } else {
        values.join(",")
    })
}

fn read_step(field: &Field, step: &str) -> Result<u16, String> {
    let greatest = field.span();
    match step.parse::<u16>() {
        Ok(step) if (1..=greatest).contains(&step) => Ok(step),
        _ => Err(format!("the step {step:?} must be a number from 1 to {greatest}")),
    }
}

/// Every value of a range, which runs over the field's end and on from its start when `first` is after `last`.
fn list(field: &Field, first: u16, last: u16, step: u16) -> Vec<String> {
    let end = if last < first { last + field.span() } else { last };
    let values = (first..=end).step_by(usize::from(step));
    values
        .map(|v| ((v - field.min) % field.span() + field.min).to_string())
        .collect()
}

fn value(field: &Field, text: &str) -> Result<u16, String> {
    let named = field
        .names
        .iter()
        .zip(field.min..)
        .find(|(name, _)| **name == text)
        .map(|(_, v)| v);
    let read = named.or_else(|| {
        text.parse()
            .ok()
            .filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
    });
    let read = read.ok_or_else(|| match field.names {
        [] => format!("{text:?} is not a number"),
        [first, .., last] => format!("{text:?} is neither a number nor a name from {first} to {last}"),
        [_] => format!("{text:?} is not a name"),
    })?;
    if (field.min..=field.max).contains(&read) {
        Ok(read)
    } else {
        Err(format!(
            "{read} is out of range, it must be {} to {}",
            field.min, field.max
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mistake_is_named_with_its_column_and_field() {
        for (expression, expected) in [
            ("* * *", "it has 3 fields"),
            ("", "it has 0 fields"),
            ("*", "it has 1 field,"),
            (
                "0 0 25 * * ?",
                "column 5, field hour: 25 is out of range, it must be 0 to 23",
            ),
            ("0 61 1 * * ?", "column 3, field minute: 61 is out of range"),
            (
                "0 0 1  *  XYZ ?",
                "column 11, field month: \"XYZ\" is neither a number nor a name from JAN to DEC",
            ),
            (
                "0 0 1,,2 * * ?",
                "column 7, field hour: a part of the list is empty",
            ),
            ("0 0/0 * * * ?", "column 3, field minute: the step \"0\""),
            ("? * * * * ?", "column 1, field second: ?"),
            ("0 0 12 1 * MON", "both given"),
            ("0 0 12 ? * ?", "column 12, field day-of-week: ? stands in both"),
            (
                "0 0 12 ? * 6#6",
                "column 12, field day-of-week: the number after #",
            ),
            (
                "0 0 12 ? * 8",
                "column 12, field day-of-week: 8 is out of range, it must be 1 to 7",
            ),
            (
                "0 0 12 L-31 * ?",
                "column 8, field day-of-month: the offset from the last day of the month must be a number from 0 to 30",
            ),
            (
                "0 0 12 1,L-3 * ?",
                "column 10, field day-of-month: L-3 must stand alone",
            ),
            ("0 0 12 L-3 * MON", "both given"),
            ("0 0 L-3 * * ?", "column 5, field hour: \"L\" is not a number"),
            (
                "0 0 12 1,L * ?",
                "column 10, field day-of-month: L must stand alone",
            ),
            ("0 0 12 * * ? 1900", "column 14, field year: 1900 is out of range"),
            ("0 0 1-x * * ?", "column 5, field hour: \"X\" is not a number"),
            ("0 0 +1 * * ?", "column 5, field hour: \"+1\" is not a number"),
        ] {
            let error = parse(expression).expect_err(expression).to_string();
            assert!(error.contains(expected), "{expression}: {error}");
        }
    }

    #[test]
    fn ranges_may_wrap_around() {
        assert_eq!(rewrite_part(2, "22-2", true), Ok("22,23,0,1,2".to_owned()));
        assert_eq!(rewrite_part(5, "FRI-MON", true), Ok("6,7,1,2".to_owned()));
        assert_eq!(rewrite_part(4, "NOV-FEB/2", true), Ok("11,1".to_owned()));
        assert_eq!(rewrite_part(1, "0/20", true), Ok("0,20,40".to_owned()));
        assert_eq!(rewrite_part(1, "5/30", true), Ok("5,35".to_owned()));
        assert_eq!(rewrite_part(1, "*/1", true), Ok("*".to_owned()));
    }

    #[test]
    fn a_range_of_everything_may_stand_in_a_list() {
        for (index, field) in [(5, "4,5-4/1"), (5, "2,1-7"), (0, "5,0-59,7"), (3, "15W,1-31")] {
            assert_eq!(rewrite_field(index, 1, field), Ok("*".to_owned()), "{field}");
        }
        assert!(parse("0 0 12 ? * 2,SUN-SAT").is_ok());
    }

    proptest::proptest! {
        /// Whatever a caller sends, the answer is a value or an error, never a panic or a long search.
        #[test]
        fn no_text_breaks_the_reader(text in "[0-9A-Z*?/#,LW -]{0,40}|.{0,60}") {
            let _ = parse(&text);
        }
    }
}

//! The plain walk: an expression is written from sets of values, and the first time that is in all of them is looked
//! for day by day. It shares no line with the reader or with the library behind it.

use std::collections::BTreeSet;

use arbitrary::Unstructured;
use chrono::{DateTime, Datelike as _, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::push::SendingWindow;

use crate::given::now;

/// So many days are walked: every combination of month, day and weekday comes within the cycle of leap years.
const DAYS: u64 = 366 * 12;

/// A field as text, and what it stands for.
struct Field {
    text: String,
    values: BTreeSet<u32>,
}

/// Checks one expression.
pub(super) fn check(input: &mut Unstructured<'_>) {
    let Ok((text, fields, weekday)) = expression(input) else {
        return;
    };
    let from = now() + TimeDelta::seconds(input.int_in_range(0..=400_000_000).unwrap_or(0));
    let window = SendingWindow::parse(&text, Tz::UTC).unwrap_or_else(|error| panic!("{text}: {error}"));
    let found = window.opens_at_or_after(from).ok();
    let expected = walk(&fields, weekday.as_ref(), from);
    // Beyond the walk there may be a match that only the library sees.
    if expected.is_some() || found.is_some_and(|found| found < from + TimeDelta::days(366 * 11)) {
        assert_eq!(found, expected, "{text} from {from}");
    }
}

type Expression = (String, [Field; 5], Option<Field>);

fn expression(input: &mut Unstructured<'_>) -> arbitrary::Result<Expression> {
    let by_weekday = input.arbitrary::<bool>()?;
    let fields = [
        field(input, 0, 59)?,
        field(input, 0, 59)?,
        field(input, 0, 23)?,
        if by_weekday {
            every(1, 31)
        } else {
            field(input, 1, 31)?
        },
        field(input, 1, 12)?,
    ];
    let weekday = by_weekday.then(|| field(input, 1, 7)).transpose()?;
    let [second, minute, hour, day, month] = &fields;
    let (day, week) = match &weekday {
        Some(weekday) => ("?", weekday.text.as_str()),
        None => (day.text.as_str(), "?"),
    };
    let text = format!(
        "{} {} {} {day} {} {week}",
        second.text, minute.text, hour.text, month.text
    );
    Ok((text, fields, weekday))
}

fn every(first: u32, last: u32) -> Field {
    Field {
        text: "*".to_owned(),
        values: (first..=last).collect(),
    }
}

/// A list of single values, ranges and steps; ranges may run over the end.
fn field(input: &mut Unstructured<'_>, first: u32, last: u32) -> arbitrary::Result<Field> {
    if input.ratio(1, 3)? {
        return Ok(every(first, last));
    }
    let (mut texts, mut values) = (Vec::new(), BTreeSet::new());
    for _ in 0..input.int_in_range(1..=3)? {
        let (from, to) = (
            input.int_in_range(first..=last)?,
            input.int_in_range(first..=last)?,
        );
        let step = input.int_in_range(1..=last - first + 1)?;
        let end = if to < from { to + (last - first + 1) } else { to };
        let folded = |value: u32| (value - first) % (last - first + 1) + first;
        let stepped = |end: u32| (from..=end).step_by(step as usize).map(folded);
        match input.int_in_range(0..=3)? {
            0 => {
                texts.push(from.to_string());
                values.insert(from);
            }
            1 => {
                texts.push(format!("{from}-{to}"));
                values.extend((from..=end).map(folded));
            }
            2 => {
                texts.push(format!("{from}/{step}"));
                values.extend(stepped(last));
            }
            _ => {
                texts.push(format!("{from}-{to}/{step}"));
                values.extend(stepped(end));
            }
        }
    }
    Ok(Field {
        text: texts.join(","),
        values,
    })
}

fn walk(fields: &[Field; 5], weekday: Option<&Field>, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let [seconds, minutes, hours, days, months] = fields;
    let matches = |day: NaiveDate| {
        months.values.contains(&day.month())
            && match weekday {
                Some(week) => week.values.contains(&(day.weekday().num_days_from_sunday() + 1)),
                None => days.values.contains(&day.day()),
            }
    };
    let today = from.date_naive();
    for day in (0..DAYS).filter_map(|ahead| today.checked_add_days(Days::new(ahead))) {
        if !matches(day) {
            continue;
        }
        let earliest = if day == today { from.time() } else { NaiveTime::MIN };
        if let Some(time) = first_time(seconds, minutes, hours, earliest) {
            return Some(day.and_time(time).and_utc().max(from));
        }
    }
    None
}

/// The first time of a day that is in all sets and whose second has not passed at `earliest`.
fn first_time(seconds: &Field, minutes: &Field, hours: &Field, earliest: NaiveTime) -> Option<NaiveTime> {
    for hour in &hours.values {
        for minute in &minutes.values {
            for second in &seconds.values {
                let time = NaiveTime::from_hms_opt(*hour, *minute, *second)?;
                if time + TimeDelta::nanoseconds(999_999_999) >= earliest {
                    return Some(time);
                }
            }
        }
    }
    None
}

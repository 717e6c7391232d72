//! A report as one Markdown table, with the notes below it.

use std::fmt::Write as _;

use crate::report::{Report, Row, Target, Unit};

/// The whole report.
pub(crate) fn markdown(report: &Report) -> String {
    let mut text = format!("{}\n\n", report.machine);
    text.push_str("| scenario | measure | result | spread | target | | floor, same run |\n");
    text.push_str("|---|---|---:|---|---|---|---|\n");
    for section in &report.sections {
        for row in &section.rows {
            line(&mut text, section.scenario, row);
        }
    }
    for section in &report.sections {
        for note in &section.notes {
            let _ = write!(text, "\n* {}: {note}", section.scenario);
        }
        for reason in &section.broken {
            let _ = write!(text, "\n* **BROKEN** {}: {reason}", section.scenario);
        }
    }
    text
}

fn line(text: &mut String, scenario: &str, row: &Row) {
    let spread = row.spread.map_or(String::new(), |(low, high)| {
        format!("{} to {}", number(low, row.unit), number(high, row.unit))
    });
    let target = row.target.map_or(String::new(), |target| bound(target, row.unit));
    let verdict = match (row.target, row.missed) {
        (None, _) => "",
        (Some(_), true) => "**MISS**",
        (Some(_), false) => "ok",
    };
    let floor = row.floor.as_deref().unwrap_or_default();
    let (measure, value) = (&row.measure, with_unit(row.value, row.unit));
    // Writing into a string cannot fail.
    let _ = writeln!(
        text,
        "| {scenario} | {measure} | {value} | {spread} | {target} | {verdict} | {floor} |"
    );
}

fn bound(target: Target, unit: Unit) -> String {
    match target {
        Target::AtLeast(bound) => format!("≥ {}", with_unit(bound, unit)),
        Target::AtMost(bound) => format!("≤ {}", with_unit(bound, unit)),
        Target::Under(bound) => format!("< {}", with_unit(bound, unit)),
    }
}

/// A number in the precision that its unit deserves, with its unit.
pub(crate) fn with_unit(value: f64, unit: Unit) -> String {
    let number = number(value, unit);
    match unit {
        Unit::PerSecond => format!("{number}/s"),
        Unit::Count => number,
        Unit::Milliseconds => format!("{number} ms"),
        Unit::Seconds => format!("{number} s"),
        Unit::Megabytes => format!("{number} MB"),
        Unit::CpuMicros => format!("{number} µs"),
    }
}

fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Milliseconds => format!("{value:.3}"),
        Unit::Seconds => format!("{value:.2}"),
        Unit::Megabytes | Unit::CpuMicros => format!("{value:.1}"),
        Unit::PerSecond if value < 1_000.0 => format!("{value:.2}"),
        Unit::PerSecond | Unit::Count => grouped(value),
    }
}

fn grouped(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Section;

    #[test]
    fn thousands_are_separated() {
        assert_eq!(grouped(999.0), "999");
        assert_eq!(grouped(1_000.0), "1,000");
        assert_eq!(grouped(1_234_567.4), "1,234,567");
    }

    #[test]
    fn a_missed_target_is_marked_and_notes_follow_the_table() {
        let mut section = Section::new("pacing");
        section.row(Row::new("rate", 240.0, Unit::PerSecond).target(Target::AtLeast(245.0)));
        section.row(Row::new("gap", 4.0001, Unit::Milliseconds).target(Target::AtLeast(4.0)));
        section.note("read with care");
        let report = Report {
            machine: "a machine".to_owned(),
            sections: vec![section],
        };
        let text = markdown(&report);
        assert!(
            text.contains("| pacing | rate | 240.00/s |  | ≥ 245.00/s | **MISS** |  |"),
            "{text}"
        );
        assert!(
            text.contains("| pacing | gap | 4.000 ms |  | ≥ 4.000 ms | ok |  |"),
            "{text}"
        );
        assert!(text.ends_with("* pacing: read with care"), "{text}");
    }
}

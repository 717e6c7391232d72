//! A report as Markdown: one table for the numbers that stand alone, one for each grid, and the notes below.

use std::fmt::Write as _;

use super::{Grid, Number, Report, Row, Section, Target, Unit};

/// The whole report.
pub(crate) fn report(report: &Report) -> String {
    let mut text = format!("{}\n", head(report));
    for section in &report.sections {
        let _ = write!(text, "\n## {}\n\n{}", section.scenario, self::section(section));
    }
    text.push_str(&verdict(report));
    text
}

/// What must be known about all of it.
pub(crate) fn head(report: &Report) -> String {
    let changed = if report.build.changed { " with changes" } else { "" };
    format!(
        "Measured {} in {:.0} min, revision {}{changed}, profile {}.\n\n{}",
        report.started,
        report.seconds / 60.0,
        report.build.revision,
        report.build.profile,
        report.machine
    )
}

/// The numbers of one scenario.
pub(crate) fn section(section: &Section) -> String {
    // Writing into a string cannot fail.
    let mut text = String::new();
    if !section.rows.is_empty() {
        text.push_str(
            "| measure | result | spread | target | | beside, same run |\n|---|---:|---|---|---|---|\n",
        );
        for row in &section.rows {
            line(&mut text, row);
        }
        text.push('\n');
    }
    for grid in &section.grids {
        self::grid(&mut text, grid);
    }
    for note in &section.notes {
        let _ = writeln!(text, "* {note}");
    }
    for reason in &section.broken {
        let _ = writeln!(text, "* **BROKEN** {reason}");
    }
    text
}

/// What did not go as it should.
fn verdict(report: &Report) -> String {
    let mut text = String::new();
    let missed: Vec<_> = report.missed().collect();
    let _ = writeln!(text, "\n{} targets missed.", missed.len());
    for (scenario, name, row) in missed {
        let _ = writeln!(text, "* **MISS** {scenario}: {name}: {}", missed_in_words(row));
    }
    text
}

fn missed_in_words(row: &Row) -> String {
    let value = row
        .value
        .map_or("nothing".to_owned(), |value| with_unit(value, row.unit));
    let target = row.target.map_or(String::new(), |target| bound(target, row.unit));
    let by = row
        .missed_by
        .map_or(String::new(), |by| format!(", by {:.0} %", by * 100.0));
    format!("{value} instead of {target}{by}")
}

fn line(text: &mut String, row: &Row) {
    let target = row.target.map_or(String::new(), |target| bound(target, row.unit));
    let beside: Vec<String> = row.beside.iter().map(number_beside).collect();
    let _ = writeln!(
        text,
        "| {} | {} | {} | {target} | {} | {} |",
        row.measure,
        value(row),
        spread(row),
        mark(row),
        beside.join("; ")
    );
}

fn grid(text: &mut String, grid: &Grid) {
    let columns = columns(grid);
    let _ = write!(text, "{}:\n\n| {} |", grid.name, grid.by);
    for column in &columns {
        let _ = write!(text, " {column} |");
    }
    let _ = writeln!(text, "\n|---|{}", "---:|".repeat(columns.len()));
    for line in &grid.lines {
        let _ = write!(text, "| {} |", line.at);
        for column in &columns {
            let row = line.rows.iter().find(|row| row.measure == *column);
            let _ = write!(text, " {} |", row.map_or(String::new(), cell));
        }
        text.push('\n');
    }
    let targets = targets(grid);
    if !targets.is_empty() {
        let _ = writeln!(text, "\nTargets: {}.", targets.join("; "));
    }
    let beside = beside(grid);
    if !beside.is_empty() {
        let _ = writeln!(text, "\nBeside, same run: {}.", beside.join("; "));
    }
    text.push('\n');
}

/// The measures of all lines, in the order in which they come.
fn columns(grid: &Grid) -> Vec<&str> {
    let mut columns: Vec<&str> = Vec::new();
    for row in grid.lines.iter().flat_map(|line| &line.rows) {
        if !columns.contains(&row.measure.as_str()) {
            columns.push(&row.measure);
        }
    }
    columns
}

fn cell(row: &Row) -> String {
    let spread = spread(row);
    let spread = if spread.is_empty() {
        spread
    } else {
        format!(" ({spread})")
    };
    let mark = if row.missed { " **MISS**" } else { "" };
    format!("{}{spread}{mark}", value(row))
}

/// The targets of a grid, each with the lines that it is meant for, unless those are all.
fn targets(grid: &Grid) -> Vec<String> {
    let mut found: Vec<(String, Vec<&str>, Vec<String>)> = Vec::new();
    for line in &grid.lines {
        for row in &line.rows {
            // That nothing was refused or lost goes without saying.
            let goes_without_saying = row.unit == Unit::Count && !row.missed;
            let Some(target) = row.target.filter(|_| !goes_without_saying) else {
                continue;
            };
            let text = format!("{} {}", row.measure, bound(target, row.unit));
            let index = found
                .iter()
                .position(|(known, ..)| *known == text)
                .unwrap_or_else(|| {
                    found.push((text, Vec::new(), Vec::new()));
                    found.len() - 1
                });
            let (_, at, missed) = &mut found[index];
            at.push(&line.at);
            if row.missed {
                missed.push(format!("{} {}", line.at, mark(row)));
            }
        }
    }
    let described = found.into_iter().map(|(text, at, missed)| {
        let at = if at.len() == grid.lines.len() {
            String::new()
        } else {
            format!(" at {}", at.join(", "))
        };
        let verdict = if missed.is_empty() {
            "ok".to_owned()
        } else {
            missed.join(", ")
        };
        format!("{text}{at}: {verdict}")
    });
    described.collect()
}

/// What stands beside the numbers of a grid, each once.
fn beside(grid: &Grid) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for row in grid.lines.iter().flat_map(|line| &line.rows) {
        for number in &row.beside {
            let text = number_beside(number);
            if !found.contains(&text) {
                found.push(text);
            }
        }
    }
    found
}

fn number_beside(number: &Number) -> String {
    let value = number
        .value
        .map_or("unknown".to_owned(), |value| with_unit(value, number.unit));
    format!("{} {value}", number.name)
}

fn mark(row: &Row) -> String {
    match (row.target, row.missed, row.missed_by) {
        (None, ..) => String::new(),
        (Some(_), false, _) => "ok".to_owned(),
        (Some(_), true, None) => "**MISS**".to_owned(),
        (Some(_), true, Some(by)) => format!("**MISS** by {:.0} %", by * 100.0),
    }
}

fn bound(target: Target, unit: Unit) -> String {
    let sign = match target {
        Target::AtLeast(_) => '≥',
        Target::AtMost(_) => '≤',
        Target::Under(_) => '<',
    };
    format!("{sign} {}", with_unit(target.bound(), unit))
}

fn value(row: &Row) -> String {
    row.value
        .map_or("none".to_owned(), |value| with_unit(value, row.unit))
}

fn spread(row: &Row) -> String {
    row.spread.map_or(String::new(), |spread| {
        format!(
            "{} to {}",
            number(spread.low, row.unit),
            number(spread.high, row.unit)
        )
    })
}

/// A number in the precision that its unit deserves, with its unit.
pub(crate) fn with_unit(value: f64, unit: Unit) -> String {
    let number = number(value, unit);
    match unit {
        Unit::PerSecond => format!("{number}/s"),
        Unit::Count => number,
        Unit::Milliseconds => format!("{number} ms"),
        Unit::Seconds | Unit::CpuPerThousand => format!("{number} s"),
        Unit::Bytes => format!("{number} B"),
        Unit::Megabytes => format!("{number} MB"),
        Unit::Times => format!("{number} times"),
    }
}

fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Milliseconds if value >= 100.0 => format!("{value:.0}"),
        Unit::Milliseconds | Unit::CpuPerThousand => format!("{value:.3}"),
        Unit::Seconds | Unit::Times => format!("{value:.2}"),
        Unit::Megabytes => format!("{value:.1}"),
        Unit::PerSecond if value < 1_000.0 => format!("{value:.2}"),
        Unit::PerSecond | Unit::Count | Unit::Bytes => grouped(value),
    }
}

fn grouped(value: f64) -> String {
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
    use crate::report::tests::sample;

    #[test]
    fn thousands_are_separated() {
        assert_eq!(grouped(999.0), "999");
        assert_eq!(grouped(1_000.0), "1,000");
        assert_eq!(grouped(1_234_567.4), "1,234,567");
    }

    #[test]
    fn a_missed_target_says_by_how_much_and_comes_again_at_the_end() {
        let text = report(&sample());
        assert!(
            text.contains(
                "| accepted | 9,000/s | 8,000 to 11,000 | ≥ 10,000/s | **MISS** by 10 % | bare HTTP 110,000/s |"
            ),
            "{text}"
        );
        assert!(text.contains("* read with care"), "{text}");
        assert!(
            text.ends_with(
                "1 targets missed.\n* **MISS** curve: accepted: 9,000/s instead of ≥ 10,000/s, by 10 %\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn lines_of_a_grid_stand_under_each_other_and_may_lack_a_measure() {
        let mut steps = Grid::new("steps", "offered");
        steps.line("1/s", vec![Row::new("p50", 1.0, Unit::Milliseconds)]);
        let p99 = Row::median("p99", &[3.0, 5.0], Unit::Milliseconds).target(Target::Under(2.0));
        steps.line("2/s", vec![Row::new("p50", 2.0, Unit::Milliseconds), p99]);
        let mut text = String::new();
        grid(&mut text, &steps);
        assert_eq!(
            text,
            "steps:\n\n| offered | p50 | p99 |\n|---|---:|---:|\n| 1/s | 1.000 ms |  |\n\
             | 2/s | 2.000 ms | 4.000 ms (3.000 to 5.000) **MISS** |\n\n\
             Targets: p99 < 2.000 ms at 2/s: 2/s **MISS** by 100 %.\n\n"
        );
    }

    #[test]
    fn what_could_not_be_measured_is_not_a_number() {
        let mut text = String::new();
        line(
            &mut text,
            &Row::median("gap", &[], Unit::Milliseconds).target(Target::AtLeast(4.0)),
        );
        assert_eq!(text, "| gap | none |  | ≥ 4.000 ms | **MISS** |  |\n");
    }
}

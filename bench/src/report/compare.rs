//! What has changed between two runs, beyond what rounds of one run differ in. Pure: the reports are given.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::markdown::with_unit;
use super::{Report, Row, Unit};

/// A number that both runs have and that is not the same any more.
#[derive(Debug, PartialEq)]
pub(crate) struct Change {
    name: String,
    before: f64,
    after: f64,
    unit: Unit,
    /// Growth as a share of what it was; `None` when that was nothing.
    share: Option<f64>,
    verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Worse,
    Better,
    Different,
}

/// Two runs side by side.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// Why the two may differ for reasons of their own.
    cautions: Vec<String>,
    changes: Vec<Change>,
    /// Numbers that both have.
    common: usize,
    /// Numbers that only one has.
    single: usize,
}

/// Compares two runs. A number without rounds is taken to be uncertain by the share `noise` of itself.
pub(crate) fn compare(before: &Report, after: &Report, noise: f64) -> Comparison {
    let (old, new) = (numbers(before), numbers(after));
    let mut comparison = Comparison {
        cautions: cautions(before, after),
        ..Comparison::default()
    };
    for (name, after) in &new {
        let Some(before) = old.get(name) else {
            comparison.single += 1;
            continue;
        };
        comparison.common += 1;
        comparison.changes.extend(change(name, before, after, noise));
    }
    comparison.single += old.keys().filter(|name| !new.contains_key(*name)).count();
    // The greatest change first, the bad ones before the good ones.
    comparison.changes.sort_by(|one, other| {
        let size = |change: &Change| change.share.map_or(f64::INFINITY, f64::abs);
        one.verdict
            .cmp(&other.verdict)
            .then(size(other).total_cmp(&size(one)))
    });
    comparison
}

fn numbers(report: &Report) -> BTreeMap<String, &Row> {
    let of_section = report.sections.iter().flat_map(|section| {
        let named = section.all();
        named.map(|(name, row)| (format!("{}: {name}", section.scenario), row))
    });
    of_section.collect()
}

fn cautions(before: &Report, after: &Report) -> Vec<String> {
    let mut cautions = Vec::new();
    if before.machine.hardware() != after.machine.hardware() {
        cautions.push("the machines are not the same".to_owned());
    }
    if before.machine.servers() != after.machine.servers() {
        cautions.push("the servers or their settings are not the same".to_owned());
    }
    if before.build.profile != after.build.profile {
        let (one, other) = (&before.build.profile, &after.build.profile);
        cautions.push(format!("built with profile {one} before and {other} after"));
    }
    for (name, value) in &after.options {
        let was = before.options.get(name).map_or("not given", String::as_str);
        if was != value {
            cautions.push(format!("option {name} was {was} before and is {value} after"));
        }
    }
    for (which, report) in [("before", before), ("after", after)] {
        if report.machine.disturbed {
            cautions.push(format!("other work disturbed the run {which}"));
        }
    }
    cautions
}

/// `None` when the two are the same within their spreads, or when there is nothing to compare.
fn change(name: &str, before: &Row, after: &Row, noise: f64) -> Option<Change> {
    let (was, is) = (before.value?, after.value?);
    let (old, new) = (span(before, was, noise), span(after, is, noise));
    if old.1 >= new.0 && new.1 >= old.0 {
        return None;
    }
    let more = is > was;
    let verdict = match wants_more(after) {
        Some(wants_more) if wants_more == more => Verdict::Better,
        Some(_) => Verdict::Worse,
        None => Verdict::Different,
    };
    Some(Change {
        name: name.to_owned(),
        before: was,
        after: is,
        unit: after.unit,
        share: (was != 0.0).then(|| (is - was) / was),
        verdict,
    })
}

/// From where to where a number may lie.
fn span(row: &Row, value: f64, noise: f64) -> (f64, f64) {
    match row.spread {
        Some(spread) => (spread.low, spread.high),
        None => (value - value.abs() * noise, value + value.abs() * noise),
    }
}

/// A target says best what is wanted.
fn wants_more(row: &Row) -> Option<bool> {
    use super::Target;
    match row.target {
        Some(Target::AtLeast(_)) => Some(true),
        Some(Target::AtMost(_) | Target::Under(_)) => Some(false),
        None => row.unit.more_is_better(),
    }
}

impl Comparison {
    /// What is worse beyond its spread, by name, the worst first.
    pub(crate) fn worse(&self) -> impl Iterator<Item = &str> {
        let worse = self
            .changes
            .iter()
            .filter(|change| change.verdict == Verdict::Worse);
        worse.map(|change| change.name.as_str())
    }

    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        // Writing into a string cannot fail.
        let mut text = String::new();
        for caution in &self.cautions {
            let _ = writeln!(text, "* caution: {caution}");
        }
        if !self.cautions.is_empty() {
            text.push('\n');
        }
        if !self.changes.is_empty() {
            text.push_str("| | measure | before | after | change |\n|---|---|---:|---:|---:|\n");
        }
        for change in &self.changes {
            let verdict = match change.verdict {
                Verdict::Worse => "**worse**",
                Verdict::Better => "better",
                Verdict::Different => "",
            };
            let share = change
                .share
                .map_or(String::new(), |share| format!("{:+.1} %", share * 100.0));
            let _ = writeln!(
                text,
                "| {verdict} | {} | {} | {} | {share} |",
                change.name,
                with_unit(change.before, change.unit),
                with_unit(change.after, change.unit)
            );
        }
        let _ = writeln!(
            text,
            "\n{} of {} numbers changed beyond their spread; {} are in one of the reports only.",
            self.changes.len(),
            self.common,
            self.single
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Section, Target};

    fn with(rows: Vec<Row>) -> Report {
        let mut section = Section::new("s");
        section.rows = rows;
        Report {
            sections: vec![section],
            ..Report::default()
        }
    }

    fn verdicts(before: Row, after: Row) -> Vec<Verdict> {
        let comparison = compare(&with(vec![before]), &with(vec![after]), 0.1);
        comparison.changes.iter().map(|change| change.verdict).collect()
    }

    fn rate(rounds: &[f64]) -> Row {
        Row::median("rate", rounds, Unit::PerSecond)
    }

    #[test]
    fn rounds_that_overlap_are_no_change() {
        assert_eq!(verdicts(rate(&[90.0, 110.0]), rate(&[108.0, 200.0])), []);
        assert_eq!(verdicts(rate(&[90.0, 110.0]), rate(&[110.0, 200.0])), []);
    }

    #[test]
    fn what_is_better_depends_on_what_is_counted() {
        assert_eq!(
            verdicts(rate(&[90.0, 110.0]), rate(&[120.0, 130.0])),
            [Verdict::Better]
        );
        assert_eq!(
            verdicts(rate(&[120.0, 130.0]), rate(&[90.0, 110.0])),
            [Verdict::Worse]
        );
        let time = |value| Row::new("p99", value, Unit::Milliseconds);
        assert_eq!(verdicts(time(10.0), time(20.0)), [Verdict::Worse]);
        let count = |value| Row::count("n", value);
        assert_eq!(verdicts(count(10), count(20)), [Verdict::Different]);
        let lost = |value| Row::count("n", value).target(Target::AtMost(0.0));
        assert_eq!(verdicts(lost(0), lost(1)), [Verdict::Worse]);
    }

    #[test]
    fn a_single_number_is_as_uncertain_as_was_said() {
        let time = |value| Row::new("p99", value, Unit::Milliseconds);
        assert_eq!(verdicts(time(10.0), time(12.0)), []);
        assert_eq!(verdicts(time(10.0), time(12.5)), [Verdict::Worse]);
    }

    #[test]
    fn what_one_run_lacks_is_counted_and_nothing_else() {
        let before = with(vec![rate(&[1.0]), Row::count("old", 1)]);
        let after = with(vec![
            rate(&[1.0]),
            Row::count("new", 1),
            Row::median("none", &[], Unit::Count),
        ]);
        let comparison = compare(&before, &after, 0.1);
        assert_eq!(
            (comparison.common, comparison.single, comparison.changes.len()),
            (1, 3, 0)
        );
        assert!(
            comparison
                .markdown()
                .ends_with("0 of 1 numbers changed beyond their spread; 3 are in one of the reports only.\n")
        );
    }

    #[test]
    fn the_worst_comes_first_and_differing_circumstances_are_told() {
        let mut before = with(vec![rate(&[100.0]), Row::new("p99", 1.0, Unit::Milliseconds)]);
        let after = with(vec![rate(&[200.0]), Row::new("p99", 2.0, Unit::Milliseconds)]);
        before.build.profile = "debug".to_owned();
        let text = compare(&before, &after, 0.1).markdown();
        assert!(
            text.starts_with("* caution: built with profile debug before and  after\n"),
            "{text}"
        );
        let worse = text
            .find("| **worse** | s: p99 | 1.000 ms | 2.000 ms | +100.0 % |")
            .unwrap();
        let better = text
            .find("| better | s: rate | 100.00/s | 200.00/s | +100.0 % |")
            .unwrap();
        assert!(worse < better, "{text}");
    }
}

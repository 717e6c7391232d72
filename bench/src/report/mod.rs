//! What was measured: numbers with their targets, in the shape that is kept as JSON. How it looks is the business of
//! `markdown`, where it goes that of `results`, and what has changed since another run that of `compare`.
//!
//! The shape is a contract: [`VERSION`] grows when an older reader would misunderstand a newer report.

pub(crate) mod compare;
pub(crate) mod docs;
pub(crate) mod markdown;
pub(crate) mod results;
mod row;
pub(crate) mod stats;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use row::{Number, Row, Target, Unit};

use crate::machine::Machine;

/// Of the shape of a report.
pub(crate) const VERSION: u32 = 1;

/// A whole run.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) version: u32,
    /// When it began, RFC 3339.
    pub(crate) started: String,
    /// How long it took.
    pub(crate) seconds: f64,
    pub(crate) build: Build,
    pub(crate) machine: Machine,
    /// The options that decide about numbers, and the settings given to the services.
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) sections: Vec<Section>,
}

/// What was measured, and how it had been built.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Build {
    /// The commit of the checkout.
    pub(crate) revision: String,
    /// Whether the checkout had changes of its own on top.
    pub(crate) changed: bool,
    /// The cargo profile of the measured program.
    pub(crate) profile: String,
}

/// The numbers of one scenario.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Section {
    pub(crate) scenario: String,
    /// How long it took.
    pub(crate) seconds: f64,
    pub(crate) rows: Vec<Row>,
    /// Numbers that belong side by side.
    pub(crate) grids: Vec<Grid>,
    /// What must be known to read the numbers rightly.
    pub(crate) notes: Vec<String>,
    /// Why the run is not valid, or shows that something was lost.
    pub(crate) broken: Vec<String>,
}

/// Lines of the same measures: the steps of a curve, the replicas, the processes.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Grid {
    pub(crate) name: String,
    /// What the lines differ in.
    pub(crate) by: String,
    pub(crate) lines: Vec<Line>,
}

/// One line of a [`Grid`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    pub(crate) at: String,
    pub(crate) rows: Vec<Row>,
}

impl Section {
    pub(crate) fn new(scenario: &str) -> Self {
        Self {
            scenario: scenario.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub(crate) fn broken(&mut self, reason: impl Into<String>) {
        self.broken.push(reason.into());
    }

    /// Every number with a name that is its own within the section.
    pub(crate) fn all(&self) -> impl Iterator<Item = (String, &Row)> {
        let rows = self.rows.iter().map(|row| (row.measure.clone(), row));
        let of_line = |grid: &Grid, line: &Line, row: &Row| {
            format!("{}, {} {}: {}", grid.name, grid.by, line.at, row.measure)
        };
        let lines = self
            .grids
            .iter()
            .flat_map(|grid| grid.lines.iter().map(move |line| (grid, line)));
        let cells = lines
            .flat_map(move |(grid, line)| line.rows.iter().map(move |row| (of_line(grid, line, row), row)));
        rows.chain(cells)
    }
}

impl Grid {
    pub(crate) fn new(name: impl Into<String>, by: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            by: by.into(),
            lines: Vec::new(),
        }
    }

    pub(crate) fn line(&mut self, at: impl Into<String>, rows: Vec<Row>) {
        self.lines.push(Line { at: at.into(), rows });
    }
}

impl Report {
    /// Everything that shows that something was lost.
    pub(crate) fn broken(&self) -> impl Iterator<Item = &String> {
        self.sections.iter().flat_map(|section| &section.broken)
    }

    /// Every missed target, with the scenario's and the number's name.
    pub(crate) fn missed(&self) -> impl Iterator<Item = (&str, String, &Row)> {
        self.sections.iter().flat_map(|section| {
            let missed = section.all().filter(|(_, row)| row.missed);
            missed.map(|(name, row)| (section.scenario.as_str(), name, row))
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample() -> Report {
        let mut section = Section::new("curve");
        section.row(
            Row::median("accepted", &[9_000.0, 11_000.0, 8_000.0], Unit::PerSecond)
                .target(Target::AtLeast(10_000.0))
                .beside([Number::new("bare HTTP", 110_000.0, Unit::PerSecond)]),
        );
        let mut grid = Grid::new("steps", "offered");
        grid.line("1,000/s", vec![Row::new("p99", 4.5, Unit::Milliseconds)]);
        section.grids.push(grid);
        section.note("read with care");
        Report {
            version: VERSION,
            started: "2026-01-02T03:04:05Z".to_owned(),
            sections: vec![section],
            ..Report::default()
        }
    }

    #[test]
    fn the_shape_of_a_report_is_a_contract() {
        let mut report = sample();
        report.machine = Machine::default();
        let json = serde_json::to_value(&report).unwrap();
        let row = &json["sections"][0]["rows"][0];
        let expected = serde_json::json!({
            "measure": "accepted", "unit": "perSecond", "value": 9_000.0,
            "rounds": [9_000.0, 11_000.0, 8_000.0], "spread": {"low": 8_000.0, "high": 11_000.0},
            "target": {"atLeast": 10_000.0}, "missed": true, "missedBy": 0.1,
            "beside": [{"name": "bare HTTP", "value": 110_000.0, "unit": "perSecond"}],
        });
        assert_eq!(row, &expected);
        let line = &json["sections"][0]["grids"][0]["lines"][0];
        assert_eq!(
            (&line["at"], &line["rows"][0]["value"]),
            (&"1,000/s".into(), &4.5.into())
        );
        let mut names: Vec<&String> = json.as_object().unwrap().keys().collect();
        names.sort();
        let expected = [
            "build", "machine", "options", "seconds", "sections", "started", "version",
        ];
        assert_eq!(names, expected);
        assert_eq!(serde_json::from_value::<Report>(json).unwrap(), report);
    }

    #[test]
    fn every_number_has_a_name_of_its_own() {
        let report = sample();
        let names: Vec<String> = report.sections[0].all().map(|(name, _)| name).collect();
        assert_eq!(names, ["accepted", "steps, offered 1,000/s: p99"]);
        assert_eq!(report.missed().count(), 1);
    }
}

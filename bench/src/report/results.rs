//! Where reports are kept, and by which name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, SecondsFormat, Utc};

use super::{Build, Report, VERSION, markdown};

/// Writes `report` as JSON and as Markdown into `folder`; returns the names of the two.
pub(crate) fn write(folder: &Path, report: &Report) -> Result<[PathBuf; 2]> {
    fs::create_dir_all(folder).context("failed to create the folder for the reports")?;
    let name = name_of(report);
    let files = ["json", "md"].map(|ending| folder.join(format!("{name}.{ending}")));
    let mut json = serde_json::to_string_pretty(report)?;
    json.push('\n');
    fs::write(&files[0], json).context("failed to write the numbers")?;
    fs::write(&files[1], markdown::report(report)).context("failed to write the report")?;
    Ok(files)
}

/// Date and time, revision, and the scenario when there is only one.
fn name_of(report: &Report) -> String {
    let time: String = report
        .started
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-')
        .collect();
    let only = match &report.sections[..] {
        [section] => format!("-{}", section.scenario.replace(' ', "-")),
        _ => String::new(),
    };
    let changed = if report.build.changed { "+" } else { "" };
    format!("{time}-{}{changed}{only}", report.build.revision)
}

/// Reads a report that [`write()`] wrote.
pub(crate) fn read(file: &Path) -> Result<Report> {
    let name = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("{name} cannot be read"))?;
    let value: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{name} is no JSON"))?;
    let version = &value["version"];
    ensure!(
        *version == VERSION,
        "{name} is a report of version {version}; this program reads version {VERSION}"
    );
    serde_json::from_value(value).with_context(|| format!("{name} is no report"))
}

/// What the checkout and the program to measure say of themselves.
pub(crate) fn build_of(program: &Path) -> Build {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let profile = program.parent().and_then(Path::file_name);
    Build {
        revision: git(&["rev-parse", "--short=10", "HEAD"]).unwrap_or("unknown".to_owned()),
        changed: git(&["status", "--porcelain", "--untracked-files=no"])
            .is_none_or(|changes| !changes.is_empty()),
        profile: profile.map_or("unknown".to_owned(), |name| name.to_string_lossy().into_owned()),
    }
}

/// A time in seconds, RFC 3339.
pub(crate) fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn the_name_of_a_file_tells_when_of_what_and_which_scenario() {
        let mut report = sample();
        report.build.revision = "0e55488abc".to_owned();
        assert_eq!(name_of(&report), "2026-01-02T030405Z-0e55488abc-curve");
        report.build.changed = true;
        report.sections.push(super::super::Section::new("pacing"));
        assert_eq!(name_of(&report), "2026-01-02T030405Z-0e55488abc+");
    }

    #[test]
    fn a_report_is_read_as_it_was_written_and_a_strange_one_is_refused() {
        let folder = std::env::temp_dir().join(format!("bench-results-{}", uuid::Uuid::now_v7()));
        let report = sample();
        let [json, markdown] = write(&folder, &report).unwrap();
        assert_eq!(read(&json).unwrap(), report);
        assert!(fs::read_to_string(markdown).unwrap().contains("## curve"));
        let strange = folder.join("strange.json");
        fs::write(&strange, r#"{"version": 7}"#).unwrap();
        let refused = read(&strange).unwrap_err().to_string();
        assert!(refused.contains("is a report of version 7"), "{refused}");
        fs::remove_dir_all(folder).unwrap();
    }
}

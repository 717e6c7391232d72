//! The tables of a Markdown document, taken from reports: no numbers are copied by hand.
//!
//! A line `<!-- bench FILE SCENARIO… -->` names a report, relative to the document, and what to show of it (`machine` for
//! what it was measured on); everything from there to the line `<!-- /bench -->` is written again.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::{Report, markdown};

const OPEN: &str = "<!-- bench ";
const CLOSE: &str = "<!-- /bench -->";

/// `text` with the tables that its reports make now. `read` gives the report of a name.
pub(crate) fn fill(text: &str, read: impl Fn(&Path) -> Result<Report>) -> Result<String> {
    let mut filled = String::with_capacity(text.len());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        filled.push_str(line);
        filled.push('\n');
        let Some(asked) = line.strip_prefix(OPEN) else {
            continue;
        };
        let asked = asked
            .strip_suffix(" -->")
            .with_context(|| format!("{line} does not end"))?;
        let (file, scenarios) = asked
            .split_once(' ')
            .with_context(|| format!("{line} names no scenario"))?;
        let report = read(Path::new(file))?;
        filled.push('\n');
        for scenario in scenarios.split_ascii_whitespace() {
            filled.push_str(&tables(&report, file, scenario)?);
        }
        let closed = lines.any(|line| line == CLOSE);
        ensure!(closed, "{line} is not followed by {CLOSE}");
        filled.push_str(CLOSE);
        filled.push('\n');
    }
    Ok(filled)
}

fn tables(report: &Report, file: &str, scenario: &str) -> Result<String> {
    if scenario == "machine" {
        return Ok(format!("{}\n\n", markdown::head(report)));
    }
    let section = report
        .sections
        .iter()
        .find(|section| section.scenario == scenario);
    let section = section.with_context(|| format!("{file} has no scenario {scenario}"))?;
    Ok(format!("{}\n", markdown::section(section)))
}

#[cfg(test)]
mod tests {
    use super::super::{results, tests::sample};
    use super::*;

    fn filled(text: &str) -> Result<String> {
        fill(text, |file| {
            assert_eq!(file, Path::new("a.json"));
            Ok(sample())
        })
    }

    #[test]
    fn what_stands_between_the_marks_is_written_again_and_nothing_else() {
        let text = "before\n<!-- bench a.json curve -->\nold\n<!-- /bench -->\nafter\n";
        let once = filled(text).unwrap();
        assert!(
            once.starts_with("before\n<!-- bench a.json curve -->\n\n| measure |"),
            "{once}"
        );
        assert!(
            once.ends_with("* read with care\n\n<!-- /bench -->\nafter\n"),
            "{once}"
        );
        assert!(!once.contains("old"), "{once}");
        assert_eq!(filled(&once).unwrap(), once);
    }

    #[test]
    fn a_mark_that_cannot_be_followed_is_an_error() {
        for text in [
            "<!-- bench a.json curve -->\n",
            "<!-- bench a.json pacing -->\n<!-- /bench -->\n",
            "<!-- bench a.json -->\n<!-- /bench -->\n",
            "<!-- bench a.json curve\n<!-- /bench -->\n",
        ] {
            assert!(filled(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_tables_of_the_pages_are_those_of_the_reports() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        for page in ["performance.md", "scale.md"] {
            let text = std::fs::read_to_string(folder.join(page)).unwrap();
            let filled = fill(&text, |file| results::read(&folder.join(file))).unwrap();
            assert!(filled == text, "{page}: run make bench ARGS=docs");
        }
    }
}

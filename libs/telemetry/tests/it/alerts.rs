//! What `deploy/prometheus` holds agrees with the catalogue and with the runbook. That the rules are valid and fire when they should
//! is tested by promtool: `scripts/prometheus-rules`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

use crate::promql::Known;

const ALERTS: &str = include_str!("../../../../deploy/prometheus/alerts.yml");
const RECORDING: &str = include_str!("../../../../deploy/prometheus/recording.yml");
const RUNBOOK: &str = include_str!("../../../../docs/runbook.md");
/// What the link to a section begins with.
const LINK: &str = "{{ $externalLabels.postrider_source }}/docs/runbook.md#";

fn rules(text: &str) -> Vec<Value> {
    let file: Value = serde_saphyr::from_str(text).unwrap();
    let groups = file["groups"].as_array().unwrap();
    groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap().clone())
        .collect()
}

fn text<'a>(rule: &'a Value, key: &str) -> &'a str {
    rule[key].as_str().unwrap_or_else(|| panic!("no {key} in {rule}"))
}

/// The catalogue together with the recording rules.
pub(crate) fn known() -> Known {
    let recording: Vec<_> = rules(RECORDING)
        .iter()
        .map(|rule| (text(rule, "record").to_owned(), text(rule, "expr").to_owned()))
        .collect();
    Known::new(&recording)
}

/// The sections of a document by the anchors that GitHub gives their headings, each with its text up to the next heading.
fn sections(document: &str) -> BTreeMap<String, String> {
    let mut sections = BTreeMap::new();
    let (mut anchor, mut code) = (String::new(), false);
    for line in document.lines() {
        code ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !code) {
            anchor = slug(heading.trim_start_matches('#').trim());
            let before = sections.insert(anchor.clone(), String::new());
            assert_eq!(before, None, "two headings have the anchor {anchor}");
        } else if let Some(section) = sections.get_mut(&anchor) {
            section.push_str(line);
            section.push('\n');
        }
    }
    sections
}

fn slug(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The names of alerts in a text.
fn names_in(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| {
            word.strip_prefix("Postrider")
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
        })
        .collect()
}

#[test]
fn rules_use_metrics_of_the_catalogue() {
    let known = known();
    for rule in rules(ALERTS) {
        known.check(text(&rule, "expr"));
    }
}

#[test]
fn alerts_are_complete() {
    let mut names = BTreeSet::new();
    for rule in rules(ALERTS) {
        let name = text(&rule, "alert");
        assert!(names.insert(name.to_owned()), "{name} is there twice");
        assert!(name.starts_with("Postrider"), "{name}");
        let severity = text(&rule["labels"], "severity");
        assert!(matches!(severity, "page" | "notify"), "{name}: {severity}");
        let (summary, description) = (
            text(&rule["annotations"], "summary"),
            text(&rule["annotations"], "description"),
        );
        assert!(!summary.ends_with('.') && description.ends_with('.'), "{name}");
    }
}

#[test]
fn alerts_lead_to_the_section_that_names_them() {
    let sections = sections(RUNBOOK);
    for rule in rules(ALERTS) {
        let name = text(&rule, "alert");
        let link = text(&rule["annotations"], "runbook_url");
        let anchor = link
            .strip_prefix(LINK)
            .unwrap_or_else(|| panic!("{name}: {link}"));
        let section = sections
            .get(anchor)
            .unwrap_or_else(|| panic!("{name}: the runbook has no section {anchor}"));
        assert!(
            names_in(section).contains(name),
            "the section {anchor} of the runbook does not name {name}"
        );
        let table = &sections["alerts"];
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("the table of alerts in the runbook lacks {name}"));
        assert!(row.contains(&format!("(#{anchor})")), "{row}");
        let severity = text(&rule["labels"], "severity");
        assert!(row.contains(&format!("| {severity} |")), "{row}");
    }
}

#[test]
fn the_runbook_names_no_alert_that_does_not_exist() {
    let rules = rules(ALERTS);
    let alerts: BTreeSet<&str> = rules.iter().map(|rule| text(rule, "alert")).collect();
    let named = names_in(RUNBOOK);
    assert_eq!(named.difference(&alerts).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn links_within_the_runbook_lead_somewhere() {
    let sections = sections(RUNBOOK);
    for link in RUNBOOK.split("](#").skip(1) {
        let anchor = link.split(')').next().unwrap();
        assert!(
            sections.contains_key(anchor),
            "the runbook has no section {anchor}"
        );
    }
}

/// Promtool proves that the samples come out; here it is proved that there are such tests for each alert.
#[test]
fn each_alert_has_a_test_where_it_fires_and_one_where_it_does_not() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus/tests");
    let (mut firing, mut quiet) = (BTreeSet::new(), BTreeSet::new());
    for file in std::fs::read_dir(folder).unwrap() {
        let file: Value =
            serde_saphyr::from_str(&std::fs::read_to_string(file.unwrap().path()).unwrap()).unwrap();
        for test in file["tests"].as_array().unwrap() {
            for query in test["promql_expr_test"].as_array().unwrap() {
                let fires = !query["exp_samples"].as_array().unwrap().is_empty();
                let into = if fires { &mut firing } else { &mut quiet };
                into.extend(names_in(text(query, "expr")).into_iter().map(str::to_owned));
            }
        }
    }
    for rule in rules(ALERTS) {
        let name = text(&rule, "alert");
        assert!(firing.contains(name), "no test lets {name} fire");
        assert!(quiet.contains(name), "no test keeps {name} quiet");
    }
}

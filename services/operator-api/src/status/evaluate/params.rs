//! That the params of a finding hold whatever number and name its sentence does, and that docs/cli.md lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use explain::words::{length, number, relative, time};
use serde_json::Value;
use uuid::Uuid;

use super::cases::cases;
use super::scene::{now, one, running};
use super::{Finding, evaluate};

/// Words that are the same in each sentence of such a finding.
const FIXED: [(&str, &str); 6] = [
    ("break-glass", "24"),
    ("dead-letters-grow", "10"),
    ("dead-letters-open", "10"),
    ("ingest-errors", "5xx"),
    ("secrets-unreadable", "reseller.secrets"),
    ("webpush-keys-missing", "webpush.keys"),
];

/// What any finding may have.
const OF_ANY: &str = "countedUpTo";

#[test]
fn every_number_and_name_of_a_sentence_is_among_its_params() {
    for finding in provoked() {
        let mut said = Vec::new();
        for (name, value) in &finding.params {
            say(name, value, &mut said);
        }
        let named: BTreeSet<&str> = said.iter().flat_map(|said| words(said)).collect();
        for word in words(&finding.text).filter(|word| word.contains(is_of_a_name)) {
            let is_fixed = FIXED.contains(&(finding.id, word));
            assert!(is_fixed || named.contains(word), "{word}: {finding:#?}");
        }
    }
}

#[test]
fn params_are_those_that_are_documented() {
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for finding in provoked() {
        let names = finding.params.keys().filter(|name| *name != OF_ANY);
        told.entry(finding.id.to_owned())
            .or_default()
            .extend(names.cloned());
    }
    assert_eq!(told, documented());
}

/// The findings of all cases.
fn provoked() -> Vec<Finding> {
    let findings = cases().flat_map(|(_, _, disturb, _)| {
        let mut facts = running();
        // Its own process, so that one service can have another clock than the others.
        one(&mut facts, "dispatcher").id = Uuid::from_u128(7);
        disturb(&mut facts);
        evaluate(&facts)
    });
    findings.collect()
}

/// How a sentence says a value.
fn say(name: &str, value: &Value, said: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| say(name, value, said)),
        Value::Array(values) => values.iter().for_each(|value| say(name, value, said)),
        Value::String(text) => {
            if let Ok(at) = text.parse::<DateTime<Utc>>() {
                said.extend([time(at), relative(at, now())]);
            }
            said.push(text.clone());
        }
        Value::Number(count) => match count.as_i64().map(i64::unsigned_abs) {
            Some(seconds) if name.ends_with("Seconds") => said.push(length(Duration::from_secs(seconds))),
            Some(millis) if name.ends_with("Millis") => said.push(length(Duration::from_millis(millis))),
            Some(count) => said.push(number(count)),
            None => said.extend(count.as_f64().map(|pace| format!("{pace:.0}"))),
        },
        Value::Null | Value::Bool(_) => {}
    }
}

/// The words of a sentence, without what stands around them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let around = |c: char| c.is_ascii_punctuation();
    text.split_whitespace().map(move |word| word.trim_matches(around))
}

/// Whether such a character makes a word a number, or a name that is no word of the language.
fn is_of_a_name(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '.' | '/' | '_')
}

/// The params in docs/cli.md, by the `id` of the finding.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, table) = page.split_once("| finding | params |").unwrap();
    // Behind the rest of that line, and the one below it.
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut documented = BTreeMap::new();
    for row in rows {
        let mut columns = row.split('|').skip(1);
        let ids = quoted(columns.next().unwrap());
        let names: BTreeSet<String> = quoted(columns.next().unwrap()).collect();
        documented.extend(ids.map(|id| (id, names.clone())));
    }
    documented
}

/// What stands in a column between backticks.
fn quoted(column: &str) -> impl Iterator<Item = String> {
    column.split('`').skip(1).step_by(2).map(str::to_owned)
}

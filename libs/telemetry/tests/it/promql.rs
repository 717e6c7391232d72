//! Which metrics and labels a PromQL expression uses. It knows as much of the language as `deploy/` needs, and takes what it does not
//! know for a mistake; whether an expression is valid is promtool's to say.

use std::collections::{BTreeMap, BTreeSet};

use telemetry::{Definition, Kind, Metric};

/// Labels that Prometheus puts on every series that it scrapes.
const SCRAPED: [&str; 2] = ["job", "instance"];
/// Words before a list of labels in parentheses.
const LISTS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
/// Series without labels of ours that no process of ours makes: of each target by Prometheus itself, and of the last drill by node_exporter.
const FOREIGN: [&str; 2] = ["up", "postrider_drill_last_passed_timestamp_seconds"];
/// The other words that may stand in an expression.
const WORDS: [&str; 20] = [
    "sum",
    "max",
    "min",
    "count",
    "rate",
    "increase",
    "changes",
    "deriv",
    "absent",
    "vector",
    "time",
    "or",
    "and",
    "unless",
    "offset",
    "histogram_quantile",
    "max_over_time",
    "min_over_time",
    "label_replace",
    "label_values",
];
/// Functions that make sense of counters alone.
const OF_COUNTERS: [&str; 2] = ["rate", "increase"];

/// The metrics that expressions may use.
pub(crate) struct Known {
    /// Names of recording rules, with the labels of what they are made of.
    recorded: BTreeMap<String, BTreeSet<String>>,
}

impl Known {
    /// The catalogue, and what recording rules make of it.
    pub(crate) fn new(recording: &[(String, String)]) -> Self {
        let mut known = Self {
            recorded: BTreeMap::new(),
        };
        // One that is made of others stands behind them.
        for (name, expression) in recording {
            let labels = known.check(expression);
            known.recorded.insert(name.clone(), labels);
        }
        known
    }

    /// Fails on a metric or a label that does not exist; returns every label of the metrics that are used.
    pub(crate) fn check(&self, expression: &str) -> BTreeSet<String> {
        let tokens = tokens(expression);
        let mut labels: BTreeSet<String> = SCRAPED.map(str::to_owned).into();
        let (mut listed, mut at) = (Vec::new(), 0);
        while let Some(token) = tokens.get(at) {
            let next = tokens.get(at + 1).map(String::as_str);
            at += 1;
            if !is_name(token) || (WORDS.contains(&token.as_str()) && token != "label_replace") {
                continue;
            }
            if token == "label_replace" {
                // It can only make the label that our rules want: the lane.
                labels.insert("lane".to_owned());
            } else if LISTS.contains(&token.as_str()) {
                let end = at + tokens[at..].iter().position(|token| token == ")").unwrap();
                listed.extend(tokens[at..end].iter().filter(|token| is_name(token)).cloned());
                at = end;
            } else {
                let own = self.labels_of(token, expression, &tokens[..at - 1]);
                if next == Some("{") {
                    let end = at + tokens[at..].iter().position(|token| token == "}").unwrap();
                    for label in tokens[at..end].iter().filter(|token| is_name(token)) {
                        assert!(own.contains(label), "{token} has no label {label}: {expression}");
                    }
                    at = end;
                }
                labels.extend(own);
            }
        }
        for label in listed {
            assert!(
                labels.contains(&label),
                "nothing has the label {label}: {expression}"
            );
        }
        labels
    }

    fn labels_of(&self, name: &str, expression: &str, before: &[String]) -> BTreeSet<String> {
        let mut labels: BTreeSet<String> = SCRAPED.map(str::to_owned).into();
        if let Some(recorded) = self.recorded.get(name) {
            labels.extend(recorded.iter().cloned());
            return labels;
        }
        if FOREIGN.contains(&name) {
            return labels;
        }
        let (definition, part) =
            find(name).unwrap_or_else(|| panic!("{name} is not in the catalogue: {expression}"));
        if let [.., function, bracket] = before
            && bracket == "("
            && OF_COUNTERS.contains(&function.as_str())
        {
            let counts = definition.kind == Kind::Counter || part.is_some();
            assert!(counts, "{function} of {name}, which is no counter: {expression}");
        }
        if part == Some("_bucket") {
            labels.insert("le".to_owned());
        }
        for label in definition.labels {
            // Prometheus keeps the name for its own label and gives ours another one.
            let clashes = SCRAPED.contains(label);
            labels.insert(if clashes {
                format!("exported_{label}")
            } else {
                (*label).to_owned()
            });
        }
        labels
    }
}

/// The metric that a series belongs to, and which part of a histogram the series is.
fn find(name: &str) -> Option<(&'static Definition, Option<&'static str>)> {
    let mut definitions = Metric::ALL.iter().map(|metric| metric.definition());
    definitions.find_map(|definition| {
        if !matches!(definition.kind, Kind::Histogram(_)) {
            return (name == definition.name).then_some((definition, None));
        }
        let part = name.strip_prefix(definition.name)?;
        let part = ["_bucket", "_sum", "_count"]
            .into_iter()
            .find(|known| *known == part)?;
        Some((definition, Some(part)))
    })
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

/// Names and signs; strings, ranges in brackets, numbers and durations are left out.
fn tokens(expression: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => 2 + rest[1..].find('"').expect("a string ends"),
            '[' => 1 + rest.find(']').expect("a range ends"),
            _ => match rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')) {
                Some(0) => first.len_utf8(),
                Some(length) => length,
                None => rest.len(),
            },
        };
        let token = &rest[..length];
        if is_name(token) || "(){}".contains(first) {
            tokens.push(token.to_owned());
        }
        rest = &rest[length..];
    }
    tokens
}

#[test]
fn expressions_are_understood() {
    let known = Known::new(&[(
        "a:b".to_owned(),
        "max by (queue) (postrider_queue_messages)".to_owned(),
    )]);
    let labels = known.check(
        "sum by (le) (rate(postrider_push_delivery_seconds_bucket{job=~\"x{y\"}[5m] offset 1h)) > 0.5 and on (queue) a:b",
    );
    assert!(labels.contains("le") && labels.contains("queue"), "{labels:?}");
}

#[test]
#[should_panic = "postrider_push_snet_total is not in the catalogue"]
fn unknown_metrics_are_found() {
    Known::new(&[]).check("rate(postrider_push_snet_total[5m])");
}

#[test]
#[should_panic = "postrider_push_sent_total has no label lane"]
fn unknown_labels_are_found() {
    Known::new(&[]).check("rate(postrider_push_sent_total{lane=\"first\"}[5m])");
}

#[test]
#[should_panic = "nothing has the label lane"]
fn unknown_labels_of_lists_are_found() {
    Known::new(&[]).check("sum by (lane) (rate(postrider_push_sent_total[5m]))");
}

#[test]
#[should_panic = "which is no counter"]
fn rates_of_gauges_are_found() {
    Known::new(&[]).check("rate(postrider_push_leader[5m])");
}

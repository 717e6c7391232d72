//! What is known of a metric besides its value.
//!
//! It deliberately holds no metric itself; they are all in `catalogue`.

use std::fmt::Write as _;

use metrics::Unit;

use crate::Metric;

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows, until the process ends.
    Counter,
    /// Grows and shrinks.
    Gauge,
    /// Observations counted in buckets with these upper bounds.
    Histogram(&'static [f64]),
}

impl Kind {
    /// Prometheus' word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// Everything about a metric that does not change.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The Prometheus name.
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// What it is measured in.
    pub unit: Unit,
    /// The names of its labels; a sample without values for all of them is a mistake.
    pub labels: &'static [&'static str],
    /// What it says, in one sentence.
    pub help: &'static str,
    /// Which metric of the push service's specification it is, with the label that selects it when one metric serves several.
    pub specified_as: &'static [(&'static str, &'static str)],
}

/// The Markdown tables of `docs/telemetry.md`: first every metric, then the names of the specification and what became of them.
pub fn reference() -> String {
    let mut text = String::from("| metric | kind | labels | meaning |\n|---|---|---|---|\n");
    for definition in Metric::ALL.iter().map(|metric| metric.definition()) {
        let labels: Vec<String> = definition
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            definition.name,
            definition.kind.name(),
            labels.join(", "),
            definition.help
        );
    }
    text.push_str("\n| specified name | metric |\n|---|---|\n");
    for definition in Metric::ALL.iter().map(|metric| metric.definition()) {
        for (name, selector) in definition.specified_as {
            let _ = writeln!(text, "| `{name}` | `{}{selector}` |", definition.name);
        }
    }
    text
}

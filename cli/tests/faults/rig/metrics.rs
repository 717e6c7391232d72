//! Reading a scrape of a process.

use std::collections::BTreeMap;

/// What a process showed at one moment.
pub(crate) struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    /// Reads Prometheus text.
    pub(crate) fn read(text: &str) -> Self {
        let samples = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit_once(' '));
        Self(
            samples
                .map(|(series, value)| (series.to_owned(), value.parse().expect("a sample is a number")))
                .collect(),
        )
    }

    /// The value of a series, written as in the text; 0 before its first sample.
    pub(crate) fn value(&self, series: &str) -> f64 {
        self.0.get(series).copied().unwrap_or(0.0)
    }

    /// Every series of these metrics, whatever its labels, that is not 0.
    pub(crate) fn of(&self, names: &[&str]) -> BTreeMap<String, f64> {
        let is_wanted = |series: &str| names.contains(&series.split('{').next().unwrap_or_default());
        self.0
            .iter()
            .filter(|(series, value)| is_wanted(series) && **value != 0.0)
            .map(|(series, value)| (series.clone(), *value))
            .collect()
    }
}

//! Reading Prometheus text, as far as the harness needs it.

/// One scrape of a process.
#[derive(Debug, Clone)]
pub(crate) struct Exposition(String);

impl Exposition {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    /// The sum of all series of `name` that carry the label pair, if one is given; `None` when there is none.
    pub(crate) fn value(&self, name: &str, label: Option<(&str, &str)>) -> Option<f64> {
        let wanted = label.map(|(key, value)| format!("{key}=\"{value}\""));
        let values: Vec<f64> = self
            .0
            .lines()
            .filter_map(|line| {
                let (series, value) = line.rsplit_once(' ')?;
                let (found, labels) = series.split_once('{').unwrap_or((series, ""));
                let labels = labels.strip_suffix('}').unwrap_or(labels);
                let carries = wanted
                    .as_ref()
                    .is_none_or(|wanted| labels.split(',').any(|pair| pair == wanted));
                (found == name && carries).then(|| value.parse().ok())?
            })
            .collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// Mean of a histogram's observations; `None` when there were none.
    pub(crate) fn mean(&self, histogram: &str) -> Option<f64> {
        let count = self.value(&format!("{histogram}_count"), None)?;
        let sum = self.value(&format!("{histogram}_sum"), None)?;
        (count > 0.0).then(|| sum / count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE gap histogram\n\
        gap_bucket{le=\"0.004\"} 0\n\
        gap_bucket{le=\"0.005\"} 7\n\
        gap_sum 0.032\n\
        gap_count 8\n\
        requests{route=\"/push\",status=\"202\"} 5\n\
        requests{route=\"/push\",status=\"503\"} 2\n\
        leader 1\n";

    #[test]
    fn series_are_found_by_name_and_label() {
        let scrape = Exposition::new(TEXT.to_owned());
        assert_eq!(scrape.value("leader", None), Some(1.0));
        assert_eq!(scrape.value("gap_bucket", Some(("le", "0.005"))), Some(7.0));
        assert_eq!(scrape.value("requests", None), Some(7.0));
        assert_eq!(scrape.value("requests", Some(("status", "202"))), Some(5.0));
        assert_eq!(scrape.value("requests", Some(("status", "20"))), None);
        assert_eq!(scrape.value("lead", None), None);
    }

    #[test]
    fn the_mean_is_of_all_observations() {
        assert_eq!(Exposition::new(TEXT.to_owned()).mean("gap"), Some(0.004));
        assert_eq!(
            Exposition::new("gap_count 0\ngap_sum 0\n".to_owned()).mean("gap"),
            None
        );
    }
}

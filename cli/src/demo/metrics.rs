//! Single values out of Prometheus text.

/// The value of the sample with this name and without labels.
pub(crate) fn value(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| {
        let (sample, value) = line.split_once(' ')?;
        if sample == name {
            value.trim().parse().ok()
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn a_sample_is_found_by_its_whole_name() {
        let text = "# HELP a_total x\na_total_more 1\na_total{kind=\"x\"} 2\na_total 3.5\n";
        assert_eq!(value(text, "a_total"), Some(3.5));
        assert_eq!(value(text, "a"), None);
        assert_eq!(value("", "a"), None);
    }
}

//! The metrics of a process as OTLP has them, read from Prometheus' text.
//!
//! Names stay as they are, and so do units in them: a collector that hands them on to Prometheus ends up with the same series that
//! a scrape has.
//!
//! It deliberately reads no more of the format than the recorder writes, and what is in the catalogue.

use std::collections::BTreeMap;

use metrics::Unit;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric as OtlpMetric, NumberDataPoint, Sum,
    metric::Data, number_data_point,
};

use crate::{Definition, Kind, Metric};

/// The time that sums are about, in nanoseconds since 1970.
#[derive(Clone, Copy)]
pub(super) struct Since {
    pub(super) began: u64,
    pub(super) now: u64,
}

/// Label names with their values.
type Labels<'a> = Vec<(&'a str, String)>;

/// A line of the text.
struct Series<'a> {
    name: &'a str,
    labels: Labels<'a>,
    value: &'a str,
}

/// What is known of one metric.
#[derive(Default)]
struct Family<'a> {
    numbers: Vec<(Labels<'a>, f64)>,
    histograms: BTreeMap<Labels<'a>, Counts>,
}

/// A histogram as Prometheus counts it: each bucket holds those below it too.
#[derive(Default)]
struct Counts {
    bounds: Vec<f64>,
    buckets: Vec<u64>,
    count: u64,
    sum: f64,
}

/// The metrics in a text.
pub(super) fn of(text: &str, since: Since) -> Vec<OtlpMetric> {
    let mut families: BTreeMap<&str, Family<'_>> = BTreeMap::new();
    for series in text.lines().filter_map(read) {
        let histogram = ["_bucket", "_sum", "_count"]
            .into_iter()
            .find_map(|part| Some((series.name.strip_suffix(part)?, part)))
            .filter(|(name, _)| definition(name).is_some());
        match histogram {
            Some((name, part)) => families.entry(name).or_default().count(part, series),
            None => families.entry(series.name).or_default().number(series),
        }
    }
    families
        .into_iter()
        .filter_map(|(name, family)| Some(family.metric(definition(name)?, since)))
        .collect()
}

/// How many data points a metric has.
pub(super) fn points(metric: &OtlpMetric) -> usize {
    match &metric.data {
        Some(Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(Data::Sum(sum)) => sum.data_points.len(),
        Some(Data::Histogram(histogram)) => histogram.data_points.len(),
        _ => 0,
    }
}

fn definition(name: &str) -> Option<&'static Definition> {
    let mut definitions = Metric::ALL.iter().map(|metric| metric.definition());
    definitions.find(|definition| definition.name == name)
}

impl<'a> Family<'a> {
    fn number(&mut self, series: Series<'a>) {
        if let Ok(value) = series.value.parse() {
            self.numbers.push((series.labels, value));
        }
    }

    fn count(&mut self, part: &str, mut series: Series<'a>) {
        let bound = series
            .labels
            .pop_if(|(name, _)| *name == "le")
            .and_then(|(_, bound)| bound.parse().ok());
        let counts = self.histograms.entry(series.labels).or_default();
        match part {
            "_sum" => counts.sum = series.value.parse().unwrap_or_default(),
            "_count" => counts.count = series.value.parse().unwrap_or_default(),
            _ => {
                // The last bucket has no bound: it holds all.
                counts
                    .bounds
                    .extend(bound.filter(|bound: &f64| bound.is_finite()));
                counts.buckets.push(series.value.parse().unwrap_or_default());
            }
        }
    }

    fn metric(self, definition: &Definition, since: Since) -> OtlpMetric {
        let numbers = self.numbers.into_iter().map(|(labels, value)| NumberDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: since.began,
            time_unix_nano: since.now,
            value: Some(number_data_point::Value::AsDouble(value)),
            ..NumberDataPoint::default()
        });
        let data = match definition.kind {
            Kind::Gauge => Data::Gauge(Gauge {
                data_points: numbers.collect(),
            }),
            Kind::Counter => Data::Sum(Sum {
                data_points: numbers.collect(),
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
                is_monotonic: true,
            }),
            Kind::Histogram(_) => Data::Histogram(Histogram {
                data_points: self
                    .histograms
                    .into_iter()
                    .map(|(labels, counts)| counts.point(labels, since))
                    .collect(),
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
            }),
        };
        OtlpMetric {
            name: definition.name.to_owned(),
            description: definition.help.to_owned(),
            unit: unit(definition.unit).to_owned(),
            data: Some(data),
            ..OtlpMetric::default()
        }
    }
}

impl Counts {
    fn point(self, labels: Labels<'_>, since: Since) -> HistogramDataPoint {
        let below = std::iter::once(0).chain(self.buckets.iter().copied());
        let alone = self
            .buckets
            .iter()
            .zip(below)
            .map(|(with, below)| with.saturating_sub(below));
        HistogramDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: since.began,
            time_unix_nano: since.now,
            count: self.count,
            sum: Some(self.sum),
            bucket_counts: alone.collect(),
            explicit_bounds: self.bounds,
            ..HistogramDataPoint::default()
        }
    }
}

/// A unit as OTLP writes it. Plain numbers have none: "1" would make ratios of gauges in Prometheus.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Seconds => "s",
        Unit::Bytes => "By",
        _ => "",
    }
}

fn attributes(labels: Labels<'_>) -> Vec<KeyValue> {
    let attribute = |(name, value): (&str, String)| KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value)),
        }),
        ..KeyValue::default()
    };
    labels.into_iter().map(attribute).collect()
}

/// A line with a value; a comment is none.
fn read(line: &str) -> Option<Series<'_>> {
    let (name, rest) = line.split_at(line.find(['{', ' '])?);
    if name.starts_with('#') {
        return None;
    }
    let mut labels = Vec::new();
    let value = match rest.strip_prefix('{') {
        Some(listed) => labels_in(listed, &mut labels)?,
        None => rest,
    };
    Some(Series {
        name,
        labels,
        value: value.trim(),
    })
}

/// Adds the labels that a text begins with; returns what comes after them.
fn labels_in<'a>(mut text: &'a str, labels: &mut Labels<'a>) -> Option<&'a str> {
    loop {
        if let Some(rest) = text.strip_prefix('}') {
            return Some(rest);
        }
        let (name, rest) = text.split_once("=\"")?;
        let (value, rest) = quoted(rest)?;
        labels.push((name, value));
        text = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// A value up to its quotation mark, and what comes after that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => value.push(match letters.next()?.1 {
                'n' => '\n',
                escaped => escaped,
            }),
            plain => value.push(plain),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINCE: Since = Since { began: 1, now: 2 };

    fn label(attribute: &KeyValue) -> (&str, &str) {
        match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
            Some(any_value::Value::StringValue(value)) => (&attribute.key, value),
            other => panic!("{other:?}"),
        }
    }

    /// The labels and value of each point, which all say the time.
    fn numbers(points: &[NumberDataPoint]) -> Vec<(Vec<(&str, &str)>, f64)> {
        let number = |point: &NumberDataPoint| {
            assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1, 2));
            match point.value {
                Some(number_data_point::Value::AsDouble(value)) => value,
                other => panic!("{other:?}"),
            }
        };
        points
            .iter()
            .map(|point| (point.attributes.iter().map(label).collect(), number(point)))
            .collect()
    }

    #[test]
    fn counters_are_sums_and_gauges_are_not() {
        let text = "# HELP postrider_push_leader 1 while this process sends.\n\
                    # TYPE postrider_push_leader gauge\n\
                    postrider_push_leader 1\n\
                    \n\
                    postrider_push_received_total{kind=\"scheduled\"} 2\n\
                    postrider_push_received_total{kind=\"of } \\\"all\\\", \\\\ and \\n\"} 3\n\
                    process_cpu_seconds_total 0.25\n\
                    something_else 1\n";

        let metrics = of(text, SINCE);

        let [leader, received, cpu] = &metrics[..] else {
            panic!("{metrics:?}")
        };
        let Some(Data::Gauge(leader)) = &leader.data else {
            panic!("{leader:?}")
        };
        assert_eq!(numbers(&leader.data_points), [(vec![], 1.0)]);
        assert_eq!(
            (received.name.as_str(), received.unit.as_str(), points(received)),
            ("postrider_push_received_total", "", 2)
        );
        let Some(Data::Sum(received)) = &received.data else {
            panic!("{received:?}")
        };
        assert!(received.is_monotonic);
        assert_eq!(
            numbers(&received.data_points),
            [
                (vec![("kind", "scheduled")], 2.0),
                (vec![("kind", "of } \"all\", \\ and \n")], 3.0)
            ]
        );
        assert_eq!(cpu.unit, "s");
    }

    #[test]
    fn buckets_of_a_histogram_hold_no_others() {
        let text = "postrider_delivery_response_seconds_bucket{lane=\"first\",le=\"0.005\"} 2\n\
                    postrider_delivery_response_seconds_bucket{lane=\"first\",le=\"0.01\"} 2\n\
                    postrider_delivery_response_seconds_bucket{lane=\"first\",le=\"+Inf\"} 5\n\
                    postrider_delivery_response_seconds_sum{lane=\"first\"} 3.5\n\
                    postrider_delivery_response_seconds_count{lane=\"first\"} 5\n\
                    postrider_delivery_response_seconds_bucket{lane=\"retry\",le=\"0.005\"} 1\n\
                    postrider_delivery_response_seconds_bucket{lane=\"retry\",le=\"+Inf\"} 1\n\
                    postrider_delivery_response_seconds_sum{lane=\"retry\"} 0.001\n\
                    postrider_delivery_response_seconds_count{lane=\"retry\"} 1\n";

        let metrics = of(text, SINCE);

        let Some(Data::Histogram(histogram)) = &metrics[0].data else {
            panic!("{metrics:?}")
        };
        let [first, retry] = &histogram.data_points[..] else {
            panic!("{histogram:?}")
        };
        assert_eq!(label(&first.attributes[0]), ("lane", "first"));
        assert_eq!((first.count, first.sum), (5, Some(3.5)));
        assert_eq!(first.explicit_bounds, [0.005, 0.01]);
        assert_eq!(first.bucket_counts, [2, 0, 3]);
        assert_eq!(retry.bucket_counts, [1, 0]);
        assert_eq!(points(&metrics[0]), 2);
    }

    #[test]
    fn every_metric_of_the_text_arrives() {
        crate::recorder::install().unwrap();
        Metric::PushSent.increment(1);
        Metric::DeliveryLag.record(0.5);

        let text = crate::render_metrics();

        let metrics = of(&text, SINCE);
        let kinds: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .collect();
        assert_eq!(metrics.len(), kinds.len(), "{kinds:?}");
        assert!(metrics.iter().all(|metric| points(metric) > 0), "{metrics:?}");
    }
}

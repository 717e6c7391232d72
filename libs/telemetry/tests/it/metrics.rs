//! The catalogue and the helpers on it.

use std::collections::BTreeSet;

use telemetry::{Kind, Metric};

use crate::{settings, shared};

#[test]
fn names_follow_the_conventions_of_prometheus() {
    let names: BTreeSet<_> = Metric::ALL
        .iter()
        .map(|metric| metric.definition().name)
        .collect();
    assert_eq!(names.len(), Metric::ALL.len(), "every name is used once");

    for definition in Metric::ALL.iter().map(|metric| metric.definition()) {
        let name = definition.name;
        assert_eq!(
            definition.kind == Kind::Counter,
            name.ends_with("_total"),
            "{name}"
        );
        assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
            "{name}"
        );
        if let Kind::Histogram(bounds) = definition.kind {
            assert!(
                bounds.is_sorted_by(|one, next| one < next),
                "{name}: bounds must grow"
            );
        }
    }
}

#[test]
fn every_metric_can_be_rendered() {
    shared();
    for metric in Metric::ALL.iter().copied() {
        let definition = metric.definition();
        let labels: Vec<_> = definition
            .labels
            .iter()
            .map(|name| (*name, "of the rendering test"))
            .collect();
        match definition.kind {
            Kind::Counter if definition.name.starts_with("process_") => {}
            Kind::Gauge if definition.name.starts_with("process_") => {}
            Kind::Counter => metric.increment_with(&labels, 0),
            Kind::Gauge => metric.set_with(&labels, 0.0),
            Kind::Histogram(_) => drop(metric.histogram(&labels)),
        }
    }

    let text = telemetry::render_metrics();

    for definition in Metric::ALL.iter().map(|metric| metric.definition()) {
        let (name, kind) = (definition.name, definition.kind.name());
        assert!(
            text.contains(&format!("# TYPE {name} {kind}\n")),
            "{name} is not in\n{text}"
        );
        assert!(
            text.contains(&format!("# HELP {name} {}\n", definition.help)),
            "{name} has no help in\n{text}"
        );
    }
}

#[test]
fn process_metrics_have_values() {
    let text = telemetry::render_metrics();
    for name in [
        "process_cpu_seconds_total ",
        "process_resident_memory_bytes ",
        "process_start_time_seconds ",
        "process_open_fds ",
        "process_max_fds ",
        "process_network_receive_bytes_total ",
        "process_network_transmit_bytes_total ",
    ] {
        let value = text.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        let value: f64 = value.parse().unwrap();
        assert!(value.is_finite() && value >= 0.0, "{name}{value}");
    }
    let memory = text
        .lines()
        .find_map(|line| line.strip_prefix("process_resident_memory_bytes "))
        .unwrap();
    assert!(memory.parse::<f64>().unwrap() > 100_000.0, "{memory}");
    let started = text
        .lines()
        .find_map(|line| line.strip_prefix("process_start_time_seconds "))
        .unwrap();
    let age = now() - started.parse::<f64>().unwrap();
    assert!(
        (-60.0..86_400.0).contains(&age),
        "started at {started}, {age} s ago"
    );
}

fn now() -> f64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64()
}

#[test]
fn setting_up_again_keeps_the_first_set_up() {
    let shared = shared();
    Metric::PushGivenUp.increment(7);

    shared.runtime.block_on(async {
        let again = telemetry::init(&settings(None)).unwrap();
        Metric::PushGivenUp.increment(1);
        again.shutdown(crate::SOON).await;
    });

    assert!(telemetry::render_metrics().contains("\npostrider_push_given_up_total 8\n"));
}

//! Who may know what: the edges of the workspace, held by a test over `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

type Edges = BTreeMap<String, BTreeSet<String>>;

/// What each member depends on when it is shipped; development dependencies do not count.
fn edges() -> Edges {
    let metadata = MetadataCommand::new()
        .no_deps()
        .exec()
        .expect("cargo metadata answers");
    let shipped = |package: &cargo_metadata::Package| {
        let normal = package
            .dependencies
            .iter()
            .filter(|d| d.kind == DependencyKind::Normal);
        normal.map(|d| d.name.clone()).collect()
    };
    metadata
        .packages
        .iter()
        .map(|p| (p.name.to_string(), shipped(p)))
        .collect()
}

fn dependents<'a>(edges: &'a Edges, on: &str) -> BTreeSet<&'a str> {
    edges
        .iter()
        .filter(|(_, deps)| deps.contains(on))
        .map(|(name, _)| name.as_str())
        .collect()
}

fn members<'a>(edges: &'a Edges, of: &str) -> BTreeSet<&'a str> {
    edges[of]
        .iter()
        .filter(|name| edges.contains_key(*name))
        .map(String::as_str)
        .collect()
}

#[test]
fn the_domain_knows_nobody() {
    assert_eq!(members(&edges(), "domain"), BTreeSet::new());
}

#[test]
fn store_broker_and_delivery_know_only_the_domain() {
    let edges = edges();
    for library in ["store", "delivery"] {
        assert_eq!(members(&edges, library), BTreeSet::from(["domain"]), "{library}");
    }
    assert!(members(&edges, "broker").is_subset(&BTreeSet::from(["domain"])));
}

#[test]
fn services_do_not_know_each_other() {
    let edges = edges();
    let services = ["ingest-api", "dispatcher", "retry-worker"];
    for service in services {
        for other in services {
            assert!(!edges[service].contains(other), "{service} depends on {other}");
        }
    }
}

#[test]
fn each_protocol_has_one_home() {
    let edges = edges();
    assert_eq!(
        dependents(&edges, "sqlx"),
        BTreeSet::from(["bench", "store", "testkit"])
    );
    assert_eq!(
        dependents(&edges, "lapin"),
        BTreeSet::from(["bench", "broker", "testkit"])
    );
    // The command line is a client of our own API; traces have an exporter of their own.
    assert!(dependents(&edges, "reqwest").is_subset(&BTreeSet::from(["cli", "delivery", "telemetry"])));
}

#[test]
fn test_code_is_not_shipped() {
    assert_eq!(dependents(&edges(), "testkit"), BTreeSet::new());
    assert_eq!(
        dependents(&edges(), "swrve-sim"),
        BTreeSet::from(["bench", "cli", "testkit"])
    );
    assert_eq!(dependents(&edges(), "bench"), BTreeSet::new());
}

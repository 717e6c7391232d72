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

/// The members in `services/`.
fn services() -> BTreeSet<String> {
    let metadata = MetadataCommand::new()
        .no_deps()
        .exec()
        .expect("cargo metadata answers");
    let services = metadata.workspace_root.join("services");
    let packages = metadata.packages.iter();
    packages
        .filter(|package| package.manifest_path.starts_with(&services))
        .map(|package| package.name.to_string())
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
fn the_domain_knows_no_other_crate() {
    assert_eq!(members(&edges(), "domain"), BTreeSet::new());
}

#[test]
fn store_broker_and_the_client_know_only_the_domain() {
    let edges = edges();
    for library in ["store", "http-client"] {
        assert_eq!(members(&edges, library), BTreeSet::from(["domain"]), "{library}");
    }
    assert!(members(&edges, "broker").is_subset(&BTreeSet::from(["domain"])));
}

#[test]
fn what_others_may_take_away_knows_no_other_crate() {
    let edges = edges();
    for library in ["signing", "encryption"] {
        assert_eq!(members(&edges, library), BTreeSet::new(), "{library}");
    }
}

#[test]
fn libraries_of_the_reseller_lane_know_what_they_need() {
    let edges = edges();
    for (library, known) in [
        ("event-schema", &["domain"][..]),
        ("signature-diagnosis", &["signing"]),
        ("explain", &["config", "domain", "store"]),
        ("mail", &["domain"]),
        ("pages", &["explain", "http-api", "telemetry"]),
        ("simulators", &["domain", "signing"]),
        (
            "http-api",
            &["runtime", "domain", "lifecycle", "store", "telemetry"],
        ),
        (
            "engine",
            &[
                "broker",
                "config",
                "http-client",
                "domain",
                "leadership",
                "lifecycle",
                "encryption",
                "signing",
                "store",
                "telemetry",
            ],
        ),
    ] {
        let known: BTreeSet<_> = known.iter().copied().collect();
        let found = members(&edges, library);
        assert!(found.is_subset(&known), "{library} knows {found:?}");
    }
}

#[test]
fn services_do_not_know_each_other_and_only_the_command_line_knows_them() {
    let edges = edges();
    let services = services();
    assert!(services.contains("dispatcher"), "{services:?}");
    for service in &services {
        let known: BTreeSet<_> = services
            .iter()
            .filter(|other| edges[service].contains(*other))
            .collect();
        assert_eq!(known, BTreeSet::new(), "{service}");
        let users = dependents(&edges, service);
        assert!(
            users.is_subset(&BTreeSet::from(["cli", "properties"])),
            "{service} is used by {users:?}"
        );
    }
}

#[test]
fn each_protocol_has_one_home() {
    let edges = edges();
    assert_eq!(
        dependents(&edges, "sqlx"),
        BTreeSet::from(["bench", "chaos", "store", "testkit"])
    );
    assert_eq!(
        dependents(&edges, "lapin"),
        BTreeSet::from(["bench", "broker", "properties", "testkit"])
    );
    for (protocol, home) in [("lettre", "mail"), ("hickory-resolver", "http-client")] {
        assert_eq!(dependents(&edges, protocol), BTreeSet::from([home]), "{protocol}");
    }
    // The diagnosis tries what signers do wrong.
    assert_eq!(
        dependents(&edges, "hmac"),
        BTreeSet::from(["signature-diagnosis", "signing"])
    );
    // The command line is a client of our own API; traces have an exporter of their own; the provider that people sign in with is neither Swrve nor an
    // endpoint (ADR 0054); nodes of Web Push ask each other, and where broadcasts come from.
    assert!(dependents(&edges, "reqwest").is_subset(&BTreeSet::from([
        "chaos",
        "cli",
        "http-client",
        "oidc",
        "telemetry",
        "webpush-connection",
        "webpush-endpoint"
    ])));
}

#[test]
fn test_code_is_not_shipped() {
    let edges = edges();
    for test_code in ["bench", "chaos", "model", "properties"] {
        assert_eq!(dependents(&edges, test_code), BTreeSet::new(), "{test_code}");
    }
    assert_eq!(dependents(&edges, "testkit"), BTreeSet::from(["chaos"]));
    assert_eq!(dependents(&edges, "testkit-macros"), BTreeSet::from(["testkit"]));
    assert_eq!(
        dependents(&edges, "fault-proxy"),
        BTreeSet::from(["chaos", "testkit"])
    );
    let harnesses = BTreeSet::from(["bench", "chaos", "cli", "properties", "testkit"]);
    let users = dependents(&edges, "simulators");
    assert!(users.is_subset(&harnesses), "simulators is used by {users:?}");
}

//! Readiness conditions and their report.

use lifecycle::Readiness;
use serde_json::json;

#[test]
fn a_new_condition_is_starting() {
    let readiness = Readiness::default();
    let _database = readiness.condition("database");

    let report = readiness.report();

    assert!(!report.ready);
    assert_eq!(report.conditions["database"].as_deref(), Some("starting"));
}

#[test]
fn ready_only_when_every_condition_holds() {
    let readiness = Readiness::default();
    let database = readiness.condition("database");
    let broker = readiness.condition("broker");

    database.ready();
    assert!(!readiness.report().ready);

    broker.ready();
    assert!(readiness.report().ready);

    database.not_ready("connection refused");
    assert_eq!(
        serde_json::to_value(readiness.report()).unwrap(),
        json!({ "ready": false, "conditions": { "broker": null, "database": "connection refused" } })
    );
}

#[test]
fn no_condition_is_ready() {
    assert!(Readiness::default().report().ready);
}

#[test]
fn conditions_of_the_same_name_in_two_parts_are_two() {
    let whole = Readiness::default();
    let (ingest, worker) = (whole.part("ingest-api"), whole.part("retry-worker"));
    let (database, other_database) = (ingest.condition("database"), worker.condition("database"));

    database.ready();
    other_database.not_ready("away");

    assert!(ingest.report().ready);
    assert!(!whole.report().ready);
    assert_eq!(
        serde_json::to_value(whole.report()).unwrap(),
        json!({ "ready": false, "conditions": { "ingest-api.database": null, "retry-worker.database": "away" } })
    );
    assert_eq!(
        serde_json::to_value(worker.report()).unwrap(),
        json!({ "ready": false, "conditions": { "database": "away" } })
    );
}

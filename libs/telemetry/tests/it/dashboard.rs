//! `deploy/grafana` holds a dashboard that can be imported, and asks for metrics that exist.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::alerts::known;

const DASHBOARD: &str = include_str!("../../../../deploy/grafana/postrider.json");

fn dashboard() -> Value {
    serde_json::from_str(DASHBOARD).unwrap()
}

fn panels(dashboard: &Value) -> impl Iterator<Item = &Value> {
    dashboard["panels"].as_array().unwrap().iter()
}

#[test]
fn panels_ask_for_metrics_of_the_catalogue() {
    let (known, dashboard) = (known(), dashboard());
    for target in panels(&dashboard)
        .filter_map(|panel| panel["targets"].as_array())
        .flatten()
    {
        known.check(target["expr"].as_str().unwrap());
    }
    for annotation in dashboard["annotations"]["list"].as_array().unwrap() {
        if let Some(expression) = annotation["expr"].as_str() {
            known.check(expression);
        }
    }
}

#[test]
fn panels_explain_themselves() {
    let dashboard = dashboard();
    let mut ids = BTreeSet::new();
    for panel in panels(&dashboard) {
        let title = panel["title"].as_str().unwrap();
        assert!(
            ids.insert(panel["id"].as_u64().unwrap()),
            "{title}: its id is there twice"
        );
        if panel["type"] == "row" {
            continue;
        }
        assert!(
            panel["description"]
                .as_str()
                .is_some_and(|text| text.ends_with('.')),
            "{title} has no description"
        );
        assert!(
            panel["fieldConfig"]["defaults"]["unit"].is_string(),
            "{title} has no unit"
        );
        assert!(
            !panel["targets"].as_array().unwrap().is_empty(),
            "{title} asks nothing"
        );
    }
}

#[test]
fn panels_do_not_overlap() {
    let dashboard = dashboard();
    let mut taken = BTreeSet::new();
    for panel in panels(&dashboard) {
        let side = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(side("x") + side("w") <= 24, "{}", panel["title"]);
        for x in side("x")..side("x") + side("w") {
            for y in side("y")..side("y") + side("h") {
                assert!(taken.insert((x, y)), "{} covers another panel", panel["title"]);
            }
        }
    }
}

#[test]
fn the_source_of_the_data_is_chosen_on_import() {
    let dashboard = dashboard();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let names: Vec<_> = variables.iter().map(|variable| &variable["name"]).collect();
    assert_eq!(names, ["datasource", "job", "instance"]);
    assert_eq!(dashboard["id"], Value::Null, "an id belongs to one Grafana alone");
    for panel in panels(&dashboard).filter(|panel| panel["type"] != "row") {
        let targets = panel["targets"].as_array().unwrap();
        for source in targets
            .iter()
            .map(|target| &target["datasource"])
            .chain([&panel["datasource"]])
        {
            assert_eq!(source["uid"], "${datasource}", "{}", panel["title"]);
        }
    }
}

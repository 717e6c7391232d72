//! What holds of the OpenAPI document of every service.

use std::path::Path;

use serde_json::{Value, json};

/// The document of `service` under `docs/openapi` is `generated`. With `UPDATE_OPENAPI` in the environment it is written first.
///
/// # Panics
///
/// When it is not.
pub fn assert_committed(service: &str, generated: &str) {
    let generated = format!("{generated}\n");
    let name = format!("docs/openapi/{service}.json");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&name);
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, &generated).expect("the document can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "{name} is out of date: run the tests with UPDATE_OPENAPI=1"
    );
}

/// Every operation says whether it needs a key; those that do name their problems.
///
/// # Panics
///
/// For the first that does not.
pub fn assert_problems_are_named(document: &Value) {
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            if operation["tags"][0] == "service" {
                assert_eq!(operation["security"], json!([]), "{method} {path}");
                continue;
            }
            assert!(operation["security"][0]["apiKey"].is_array(), "{method} {path}");
            for status in expected(path, operation) {
                let response = &operation["responses"][status]["content"]["application/problem+json"];
                let schema = &response["schema"]["$ref"];
                assert_eq!(
                    *schema, "#/components/schemas/Problem",
                    "{method} {path} {status}"
                );
            }
        }
    }
}

fn expected(path: &str, operation: &Value) -> Vec<&'static str> {
    let mut statuses = vec!["401", "403", "500", "503"];
    let parameters = operation["parameters"].as_array();
    if path.contains('{') {
        statuses.push("404");
    }
    if parameters.is_some_and(|all| all.iter().any(|parameter| parameter["in"] == "query")) {
        statuses.push("400");
    }
    if operation["requestBody"].is_object() {
        statuses.extend(["400", "408", "413", "415", "422"]);
    }
    statuses
}

/// Every reference within the document leads somewhere.
///
/// # Panics
///
/// For those that do not.
pub fn assert_references_resolve(document: &Value) {
    assert_eq!(unresolved(document, document), [] as [&str; 0]);
}

fn unresolved<'a>(document: &Value, part: &'a Value) -> Vec<&'a str> {
    match part {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            let own = own.filter(|reference| document.pointer(reference.trim_start_matches('#')).is_none());
            own.into_iter()
                .chain(members.values().flat_map(|member| unresolved(document, member)))
                .collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| unresolved(document, item)).collect(),
        _ => Vec::new(),
    }
}

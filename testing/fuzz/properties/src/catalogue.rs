//! The body of `PUT /event-types/{name}`: a definition without findings has a schema that compiles and an example that
//! keeps to it, as do all variants, whose names are unique, and all that is found is named by field.

use std::collections::HashSet;

use event_schema::{Definition, PayloadRules};

/// Checks the property.
pub fn check(body: &[u8]) {
    let definition: Definition = match http_api::fuzzing::payload(body) {
        Ok(definition) => definition,
        Err(problem) => return crate::given::is_explained(&problem),
    };
    let findings = definition.findings("domain.created");
    for finding in &findings {
        assert!(
            !finding.field.is_empty() && !finding.detail.is_empty(),
            "{finding:?}"
        );
    }
    if !findings.is_empty() {
        return;
    }
    assert!(definition.example.is_object() && !definition.description.trim().is_empty());
    if let Some(schema) = &definition.schema {
        let rules = PayloadRules::compile(schema, definition.unknown_fields)
            .expect("a definition without findings has usable rules");
        let variants = definition.variants.iter().map(|variant| &variant.data);
        for payload in variants.chain([&definition.example]) {
            let text = payload.to_string();
            let checked = rules.check(&text).expect("what was read can be read again");
            assert_eq!(checked.violations, []);
            assert_eq!(checked.data, text, "nothing of an example is dropped");
        }
    }
    let names: HashSet<&str> = definition.variants.iter().map(|variant| &*variant.name).collect();
    assert!(names.len() == definition.variants.len() && names.len() <= 50);
    let written = serde_json::to_vec(&definition).expect("a definition can be written");
    let again: Definition =
        http_api::fuzzing::payload(&written).unwrap_or_else(|problem| panic!("{}", problem.example()));
    assert_eq!(again, definition);
}

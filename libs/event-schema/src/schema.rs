//! JSON Schemas, compiled.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// Most violations that are told of one payload.
const TOLD: usize = 20;

/// A compiled JSON Schema. Compiling costs far more than checking a payload: it is to be done once.
#[derive(Debug)]
pub struct PayloadSchema {
    validator: Validator,
}

/// A schema that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("is not a JSON Schema that can be used: {place}{reason}")]
pub struct SchemaError {
    place: String,
    reason: String,
}

/// Something in a payload that its schema does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer (RFC 6901) to what is wrong; empty for the payload as a whole.
    pub pointer: String,
    /// Which rule it breaks.
    pub detail: String,
}

/// Most references in a schema. A chain of definitions that each name the next one twice takes two to the power of half
/// of this many steps.
const REFERENCES_MAX: usize = 24;

impl PayloadSchema {
    /// Compiles a schema of the draft that its `$schema` names, 2020-12 when it names none. `format` is checked.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] when the schema is none, or refers to something outside itself.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        if references(schema) > REFERENCES_MAX {
            return Err(SchemaError {
                place: String::new(),
                reason: format!(
                    "holds more than {REFERENCES_MAX} references; each can double the work of a check"
                ),
            });
        }
        // Patterns without look-around and back-references, whose time grows with the text and no faster.
        let options = jsonschema::options()
            .with_pattern_options(PatternOptions::regex())
            .should_validate_formats(true);
        let validator = options.build(schema).map_err(|error| {
            let place = error.instance_path().as_str();
            SchemaError {
                place: if place.is_empty() {
                    String::new()
                } else {
                    format!("at {place}: ")
                },
                reason: error.to_string(),
            }
        })?;
        Ok(Self { validator })
    }

    /// What the schema does not allow in `payload`; empty when all is well. Of very many violations the first ones.
    #[must_use]
    pub fn violations(&self, payload: &Value) -> Vec<Violation> {
        if self.validator.is_valid(payload) {
            return Vec::new();
        }
        let errors = self.validator.iter_errors(payload).take(TOLD);
        errors
            .map(|error| Violation {
                pointer: error.instance_path().as_str().to_owned(),
                detail: error.masked().to_string(),
            })
            .collect()
    }
}

/// How many references a schema holds, wherever they stand.
fn references(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| {
                usize::from(name.ends_with("ef") && name.starts_with('$')) + references(member)
            })
            .sum(),
        Value::Array(items) => items.iter().map(references).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> PayloadSchema {
        PayloadSchema::compile(&json!({
            "type": "object",
            "required": ["domain"],
            "properties": {
                "domain": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "maxLength": 5}}},
                "at": {"type": "string", "format": "date-time"},
            },
        }))
        .unwrap()
    }

    fn found(payload: &Value) -> Vec<(String, String)> {
        let violations = schema().violations(payload);
        violations
            .into_iter()
            .map(|violation| (violation.pointer, violation.detail))
            .collect()
    }

    #[test]
    fn a_violation_names_its_place_and_its_rule_but_not_what_is_there() {
        let payload = json!({"domain": {"name": "secret"}, "at": "hidden"});
        let mut found = found(&payload);
        found.sort();
        let places: Vec<_> = found.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(places, ["/at", "/domain/name"]);
        assert!(found[0].1.contains("date-time"), "{found:?}");
        assert!(found[1].1.contains("longer than 5"), "{found:?}");
        assert!(
            found
                .iter()
                .all(|(_, detail)| !detail.contains("secret") && !detail.contains("hidden")),
            "{found:?}"
        );
    }

    #[test]
    fn what_is_missing_is_named_at_the_place_where_it_should_be() {
        let found = found(&json!({"domain": {}}));
        assert_eq!(found[0].0, "/domain");
        assert!(found[0].1.contains("name"), "{found:?}");
    }

    #[test]
    fn of_a_flood_of_violations_some_are_told() {
        let schema = PayloadSchema::compile(&json!({"additionalProperties": {"type": "null"}})).unwrap();
        let payload: Value = (0..1000).map(|n| (n.to_string(), json!(n))).collect();
        assert_eq!(schema.violations(&payload).len(), TOLD);
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for schema in [
            json!({"type": "thing"}),
            json!({"properties": []}),
            json!({"pattern": "("}),
            json!(5),
        ] {
            assert!(PayloadSchema::compile(&schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_the_outside_is_refused() {
        for reference in ["http://127.0.0.1:1/x.json", "file:///etc/passwd", "other.json"] {
            let error = PayloadSchema::compile(&json!({"$ref": reference})).unwrap_err();
            assert!(error.to_string().starts_with("is not a JSON Schema"), "{error}");
        }
        let within = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}});
        assert!(PayloadSchema::compile(&within).is_ok());
    }

    #[test]
    fn a_pattern_that_could_run_for_ever_is_refused() {
        assert!(PayloadSchema::compile(&json!({"pattern": "(a+)\\1"})).is_err());
    }

    #[test]
    fn a_chain_of_references_that_doubles_with_each_link_is_refused() {
        let mut definitions = serde_json::Map::new();
        for link in 0..40 {
            let next = format!("#/$defs/a{}", link + 1);
            definitions.insert(
                format!("a{link}"),
                json!({"allOf": [{"$ref": next}, {"$ref": next}]}),
            );
        }
        definitions.insert("a40".to_owned(), json!(true));
        let bomb = json!({"$ref": "#/$defs/a0", "$defs": definitions});
        assert!(PayloadSchema::compile(&bomb).is_err());
    }
}

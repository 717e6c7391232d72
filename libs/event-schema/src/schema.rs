//! JSON Schemas, compiled.

use jsonschema::{PatternOptions, Regex, Validator};
use serde_json::Value;

use crate::reach::{Reach, depth_of};
use crate::rule::Rule;

/// Most violations that are told of one payload.
pub(crate) const TOLD: usize = 20;

/// A compiled JSON Schema. Compiling costs far more than checking a payload: it is to be done once.
#[derive(Debug)]
pub struct PayloadSchema {
    validator: Validator,
    /// References that lead back to themselves.
    cyclic_references: usize,
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
    /// Which rule it breaks, as a sentence.
    pub detail: String,
    /// The same for programs; missing where it cannot be told which one it is.
    pub rule: Option<Rule>,
}

/// Most references in a schema. A chain of definitions that each name the next one twice takes two to the power of half
/// of this many steps.
const REFERENCES_MAX: usize = 24;
/// Most patterns in a schema, and most bytes that each may take when it is compiled: repetitions in each other make
/// megabytes of a few characters, and every process that takes events in has every schema in memory.
const PATTERNS_MAX: usize = 64;
const PATTERN_MAX_BYTES: usize = 8 * 1024 * 1024;
/// Most steps that finding the places of violations may take. Whether there are any is asked before, and that is quick:
/// it is remembered which part of a payload has been compared with which part of the schema. Places are not remembered,
/// so that two references to the schema itself double the steps with every level of the payload.
const STEPS_MAX: usize = 4_096;

impl PayloadSchema {
    /// Compiles a schema of the draft that its `$schema` names, 2020-12 when it names none. `format` is checked.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let reach = Reach::of(schema);
        if reach.patterns() > PATTERNS_MAX {
            return Err(SchemaError::whole(format!(
                "holds more than {PATTERNS_MAX} patterns; each takes memory for as long as the schema is in use"
            )));
        }
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_MAX_BYTES)
            .dfa_size_limit(PATTERN_MAX_BYTES);
        Self::build(schema, &reach, patterns)
    }

    /// Compiles a schema that was accepted before, maybe by an earlier version with wider limits: it goes on to be used.
    ///
    /// # Errors
    ///
    /// As for [`Self::compile`], but for memory.
    pub fn compile_stored(schema: &Value) -> Result<Self, SchemaError> {
        Self::build(schema, &Reach::of(schema), PatternOptions::regex())
    }

    /// Patterns are those without look-around and back-references, whose time grows with the text and no faster.
    fn build(schema: &Value, reach: &Reach, patterns: PatternOptions<Regex>) -> Result<Self, SchemaError> {
        if reach.references() > REFERENCES_MAX {
            return Err(SchemaError::whole(format!(
                "holds more than {REFERENCES_MAX} references; each can double the work of a check"
            )));
        }
        let options = jsonschema::options()
            .with_pattern_options(patterns)
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
        Ok(Self {
            validator,
            cyclic_references: reach.cyclic_references(),
        })
    }

    /// What the schema does not allow in `payload`; empty when all is well. Of very many violations the first ones.
    pub fn violations(&self, payload: &Value) -> Vec<Violation> {
        if self.validator.is_valid(payload) {
            return Vec::new();
        }
        if !self.can_be_explained(payload) {
            let detail = "does not keep to the schema, and is nested too deeply to tell where: the schema refers to itself \
                          in more than one place";
            return vec![Violation {
                pointer: String::new(),
                detail: detail.to_owned(),
                rule: None,
            }];
        }
        let errors = self.validator.iter_errors(payload).take(TOLD);
        errors
            .map(|error| Violation {
                pointer: error.instance_path().as_str().to_owned(),
                detail: error.masked().to_string(),
                rule: Some(Rule::of(&error)),
            })
            .collect()
    }

    /// Whether the places of violations are found in so few steps that no caller has to wait.
    fn can_be_explained(&self, payload: &Value) -> bool {
        let steps = self.cyclic_references.checked_pow(depth_of(payload));
        steps.is_some_and(|steps| steps <= STEPS_MAX)
    }
}

impl SchemaError {
    pub(crate) fn whole(reason: String) -> Self {
        Self {
            place: String::new(),
            reason,
        }
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
    fn a_deep_payload_costs_no_more_than_its_levels_when_a_schema_refers_to_itself_twice() {
        let twice = json!([{"$ref": "#"}, {"$ref": "#"}]);
        for way in ["allOf", "anyOf", "oneOf"] {
            let schema = json!({"type": ["object", "integer"], "properties": {"a": {way: twice}}});
            let schema = PayloadSchema::compile(&schema).unwrap();
            // Two to the power of a hundred steps would outlast the caller who waits for the answer.
            let deep = (0..100).fold(json!("x"), |inner, _| json!({"a": inner}));
            let violations = schema.violations(&deep);
            assert_eq!(violations.len(), 1, "{way}");
            assert_eq!(violations[0].pointer, "");
            assert!(
                violations[0].detail.contains("nested too deeply"),
                "{violations:?}"
            );
            // A payload of a few levels is told where it is wrong.
            let shallow = schema.violations(&json!({"a": {"a": "x"}}));
            assert!(
                shallow
                    .iter()
                    .all(|violation| violation.pointer.starts_with("/a")),
                "{shallow:?}"
            );
        }
    }

    #[test]
    fn a_tree_of_any_depth_is_told_where_it_is_wrong() {
        let tree = json!({"required": ["n"], "properties": {"children": {"items": {"$ref": "#"}}}});
        let schema = PayloadSchema::compile(&tree).unwrap();
        let deep = (0..40).fold(json!({}), |inner, _| json!({"n": 1, "children": [inner]}));
        let violations = schema.violations(&deep);
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].pointer, "/children/0".repeat(40));
    }

    #[test]
    fn a_pattern_that_takes_megabytes_is_refused_and_so_are_many() {
        for pattern in ["((a{99}){99}){99}", "(.{199}){199}"] {
            let error = PayloadSchema::compile(&json!({"items": {"pattern": pattern}})).unwrap_err();
            assert!(error.to_string().contains("at /items/pattern"), "{error}");
        }
        let many = |count: usize| {
            let each: Vec<_> = (0..count)
                .map(|number| json!({"pattern": format!("^{number}$")}))
                .collect();
            PayloadSchema::compile(&json!({"anyOf": each}))
        };
        assert!(many(PATTERNS_MAX).is_ok());
        assert!(
            many(PATTERNS_MAX + 1)
                .unwrap_err()
                .to_string()
                .contains("patterns")
        );
        let name = r"^[\p{L}\p{N}_-]{1,63}$";
        assert!(PayloadSchema::compile(&json!({"pattern": name})).is_ok());
    }

    #[test]
    fn a_schema_that_was_stored_under_wider_limits_goes_on_to_be_used() {
        let each: Vec<Value> = (0..=PATTERNS_MAX)
            .map(|number| json!({"pattern": format!("^{number}$")}))
            .collect();
        let schema = json!({"anyOf": each});
        assert!(PayloadSchema::compile(&schema).is_err());
        let stored = PayloadSchema::compile_stored(&schema).unwrap();
        assert!(stored.violations(&json!("7")).is_empty());
        assert_eq!(stored.violations(&json!("x")).len(), 1);
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

//! The rule that a payload breaks, for programs: which one it is and what it asks for, never what the payload holds.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::{Map, Value};

use crate::schema::TOLD;

/// A rule that a payload breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The keyword of JSON Schema, `false` for a schema that allows nothing, or `unknownFields` of the event type.
    pub keyword: String,
    /// `keyword`; `schemaPath`, the JSON Pointer to it in the schema; `min` or `max` where it is a bound; `properties`, the members
    /// of the object that are missing or not allowed, where it is about some.
    pub params: Map<String, Value>,
}

impl Rule {
    /// That fields which the schema does not list are not taken.
    pub(crate) fn unknown_fields() -> Self {
        Self::named("unknownFields")
    }

    pub(crate) fn of(error: &ValidationError<'_>) -> Self {
        let keyword = match error.kind() {
            // The name that the library gives it is no keyword.
            Kind::FalseSchema => "false",
            kind => kind.keyword(),
        };
        let rule = Self::named(keyword).naming("schemaPath", error.schema_path().as_str());
        match error.kind() {
            Kind::MinLength { limit } | Kind::MinItems { limit } | Kind::MinProperties { limit } => {
                rule.naming("min", *limit)
            }
            Kind::MaxLength { limit } | Kind::MaxItems { limit } | Kind::MaxProperties { limit } => {
                rule.naming("max", *limit)
            }
            Kind::Minimum { limit } | Kind::ExclusiveMinimum { limit } => rule.naming("min", limit.clone()),
            Kind::Maximum { limit } | Kind::ExclusiveMaximum { limit } => rule.naming("max", limit.clone()),
            Kind::Required { property } => rule.naming("properties", vec![property.clone()]),
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                let told: Vec<_> = unexpected.iter().take(TOLD).map(String::as_str).collect();
                rule.naming("properties", told)
            }
            _ => rule,
        }
    }

    fn named(keyword: &str) -> Self {
        let rule = Self {
            keyword: keyword.to_owned(),
            params: Map::new(),
        };
        rule.naming("keyword", keyword)
    }

    fn naming(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::PayloadSchema;

    use super::*;

    /// What is told of the one rule that the payload breaks.
    #[track_caller]
    fn told(schema: &Value, payload: &Value) -> Value {
        let violations = PayloadSchema::compile(schema).unwrap().violations(payload);
        let [violation] = violations.as_slice() else {
            panic!("{violations:?}");
        };
        let rule = violation.rule.as_ref().unwrap();
        assert_eq!(rule.params["keyword"], rule.keyword);
        Value::from(rule.params.clone())
    }

    #[test]
    fn a_rule_says_where_it_stands_and_what_it_asks_for() {
        let within = |rule: Value| json!({"properties": {"a": rule}});
        for (rule, value, told_of_it) in [
            (json!({"type": "string"}), json!(1), json!({"keyword": "type"})),
            (
                json!({"maxLength": 2}),
                json!("abc"),
                json!({"keyword": "maxLength", "max": 2}),
            ),
            (
                json!({"minItems": 1}),
                json!([]),
                json!({"keyword": "minItems", "min": 1}),
            ),
            (
                json!({"exclusiveMinimum": 0}),
                json!(0),
                json!({"keyword": "exclusiveMinimum", "min": 0}),
            ),
            (
                json!({"required": ["b"]}),
                json!({}),
                json!({"keyword": "required", "properties": ["b"]}),
            ),
            (
                json!({"properties": {"b": {}}, "additionalProperties": false}),
                json!({"c": 1}),
                json!({"keyword": "additionalProperties", "properties": ["c"]}),
            ),
            (
                json!({"pattern": "^a$"}),
                json!("b"),
                json!({"keyword": "pattern"}),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
                json!(1),
                json!({"keyword": "anyOf"}),
            ),
        ] {
            let mut expected = told_of_it;
            let place = format!("/properties/a/{}", expected["keyword"].as_str().unwrap());
            expected["schemaPath"] = place.into();
            assert_eq!(told(&within(rule), &json!({"a": value})), expected);
        }
        assert_eq!(
            told(&within(json!(false)), &json!({"a": 1})),
            json!({"keyword": "false", "schemaPath": "/properties/a"})
        );
    }
}

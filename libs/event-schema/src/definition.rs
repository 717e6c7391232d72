//! An event type as the maintainer of the catalogue writes it down.

use std::collections::HashSet;

use domain::event::{EventError, UnknownFields, is_reserved};
use domain::subscription::is_event_type;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::variant::{self, Variant};
use crate::{PayloadRules, Rule};

/// What a request that holds a definition may take, in bytes: room for the largest one, with blanks between its members.
pub const DEFINITION_MAX: usize = 1_048_576;
/// Longest description, in bytes.
pub(crate) const DESCRIPTION_MAX: usize = 2000;
/// Largest schema and largest payload, in bytes of compact JSON.
pub(crate) const JSON_MAX: usize = 65_536;
/// Most attributes.
const ATTRIBUTES_MAX: usize = 200;

/// What the catalogue says of an event type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub struct Definition {
    /// When the event occurs, for people.
    #[serde(default)]
    pub description: String,
    /// The attributes of a payload, for people.
    #[serde(default)]
    pub attributes: Vec<Attribute>,
    /// A payload.
    #[serde(default)]
    pub example: Value,
    /// Further payloads, one for each way that they can differ from the example. A definition that leaves them out, as
    /// those written before there were any, has none.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// A JSON Schema that payloads are checked against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// What becomes of a field of a payload that the schema does not list. Without a schema there is nothing to tell it by.
    #[serde(default)]
    pub unknown_fields: UnknownFields,
}

/// An attribute of a payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub struct Attribute {
    /// Its name, with dots between the names of nested objects.
    pub name: String,
    /// Its JSON type, or what of it is expected.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it says.
    #[serde(default)]
    pub description: String,
    /// Whether it is always there.
    #[serde(default)]
    pub required: bool,
}

/// What is wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The field on the wire.
    pub field: String,
    /// What is wrong with it.
    pub detail: String,
    /// The rule that a payload breaks, where it is one of the definition's own.
    pub rule: Option<Rule>,
}

impl Finding {
    pub(crate) fn new(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            detail: detail.into(),
            rule: None,
        }
    }
}

impl Definition {
    /// Everything that keeps the definition from becoming the catalogue's entry `name`; empty when nothing does. Among
    /// it: a schema that does not compile, and an example or a variant that does not keep to it.
    pub fn findings(&self, name: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        if !is_event_type(name) {
            findings.push(Finding::new("name", EventError::Type.to_string()));
        } else if is_reserved(name) {
            findings.push(Finding::new(
                "name",
                "must not start with postrider., which is kept for events about the service itself",
            ));
        }
        if self.description.trim().is_empty() || self.description.len() > DESCRIPTION_MAX {
            let detail = format!("must be a text of at most {DESCRIPTION_MAX} bytes that is not blank");
            findings.push(Finding::new("description", detail));
        }
        self.check_attributes(&mut findings);
        self.check_payloads(&mut findings);
        findings
    }

    fn check_attributes(&self, findings: &mut Vec<Finding>) {
        if self.attributes.len() > ATTRIBUTES_MAX {
            let detail = format!("must be at most {ATTRIBUTES_MAX}");
            findings.push(Finding::new("attributes", detail));
        }
        let mut names = HashSet::new();
        for (place, attribute) in self.attributes.iter().enumerate() {
            let mut wrong = |field, detail| {
                findings.push(Finding::new(format!("attributes[{place}].{field}"), detail));
            };
            if attribute.name.trim().is_empty() {
                wrong("name", "must not be blank");
            } else if !names.insert(&attribute.name) {
                wrong("name", "must not be given twice");
            }
            if attribute.kind.trim().is_empty() {
                wrong("type", "must not be blank");
            }
        }
    }

    fn check_payloads(&self, findings: &mut Vec<Finding>) {
        let too_long = |value: &Value| value.to_string().len() > JSON_MAX;
        let length = || format!("must be at most {JSON_MAX} bytes long");
        if !self.example.is_object() {
            findings.push(Finding::new("example", "must be a JSON object"));
        } else if too_long(&self.example) {
            findings.push(Finding::new("example", length()));
        }
        variant::check(&self.variants, findings);
        let Some(schema) = &self.schema else { return };
        if too_long(schema) {
            findings.push(Finding::new("schema", length()));
            return;
        }
        match PayloadRules::compile(schema, self.unknown_fields) {
            Ok(rules) => self.compare_payloads(&rules, findings),
            Err(error) => findings.push(Finding::new("schema", error.to_string())),
        }
    }

    fn compare_payloads(&self, rules: &PayloadRules, findings: &mut Vec<Finding>) {
        let variants = self.variants.iter().enumerate();
        let variants = variants.map(|(place, variant)| (variant::place_of(place, "data"), &variant.data));
        for (field, payload) in [("example".to_owned(), &self.example)]
            .into_iter()
            .chain(variants)
        {
            for violation in rules.example_violations(payload) {
                let place = format!("{field}{}", violation.pointer);
                findings.push(Finding {
                    rule: violation.rule,
                    ..Finding::new(place, violation.detail)
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(changes: &Value) -> Definition {
        let mut whole = json!({
            "description": "A domain was registered.",
            "attributes": [{"name": "domain.name", "type": "string", "description": "Its name.", "required": true}],
            "example": {"domain": {"name": "example.org"}},
            "schema": {
                "type": "object", "required": ["domain"],
                "properties": {"domain": {"properties": {"name": {"type": "string"}}}},
            },
        });
        for (name, value) in changes.as_object().unwrap() {
            whole[name] = value.clone();
        }
        serde_json::from_value(whole).unwrap()
    }

    fn fields(name: &str, changes: &Value) -> Vec<String> {
        let findings = definition(changes).findings(name);
        findings.into_iter().map(|finding| finding.field).collect()
    }

    #[test]
    fn a_complete_definition_is_accepted() {
        assert!(fields("domain.created", &json!({})).is_empty());
        assert!(fields("domain.created", &json!({"schema": null, "attributes": []})).is_empty());
    }

    #[test]
    fn everything_that_is_wrong_is_listed() {
        let wrong = json!({
            "description": " ",
            "attributes": [{"name": "a", "type": " "}, {"name": "a", "type": "string"}],
            "example": [],
            "schema": {"type": "thing"},
        });
        assert_eq!(
            fields("domain", &wrong),
            [
                "name",
                "description",
                "attributes[0].type",
                "attributes[1].name",
                "example",
                "schema"
            ]
        );
        assert_eq!(fields("postrider.mine", &json!({})), ["name"]);
    }

    #[test]
    fn an_example_has_to_keep_to_the_schema() {
        let schema = json!({"properties": {"domain": {"properties": {"name": {"type": "integer"}}}}});
        assert_eq!(
            fields("domain.created", &json!({"schema": schema})),
            ["example/domain/name"]
        );
    }

    #[test]
    fn every_variant_has_to_keep_to_the_schema_as_well() {
        let variant = |name: &str, data: Value| json!({"name": name, "description": "Why.", "data": data});
        let right = variant("right", json!({"domain": {"name": "example.net"}}));
        let wrong = variant("wrong", json!({"domain": {"name": 1}}));
        let schema = json!({"properties": {"domain": {"properties": {"name": {"type": "string"}}}}});
        let changes = json!({"variants": [right, wrong], "schema": schema});
        assert_eq!(
            fields("domain.created", &changes),
            ["variants[1].data/domain/name"]
        );
        let unchecked = json!({"variants": changes["variants"], "schema": null});
        assert!(fields("domain.created", &unchecked).is_empty());
    }

    #[test]
    fn examples_and_variants_hold_nothing_that_the_schema_does_not_list() {
        let secret = json!({"domain": {"name": "example.org", "authCode": "x"}});
        let variant = json!({"name": "in", "description": "Why.", "data": secret});
        let changes =
            |unknown: &str| json!({"example": secret, "variants": [variant], "unknownFields": unknown});
        for unknown in ["REFUSE", "DROP"] {
            assert_eq!(
                fields("domain.created", &changes(unknown)),
                ["example/domain/authCode", "variants[0].data/domain/authCode"]
            );
        }
        assert!(fields("domain.created", &changes("ALLOW")).is_empty());
    }

    #[test]
    fn a_definition_that_names_no_variants_has_none_and_refuses_unknown_fields() {
        assert_eq!(definition(&json!({})).unknown_fields, UnknownFields::Refuse);
        assert!(definition(&json!({})).variants.is_empty());
    }
}

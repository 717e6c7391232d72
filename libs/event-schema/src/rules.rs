//! Everything that payloads of an event type have to keep to: its schema, and what becomes of fields that the schema does
//! not list.

use std::borrow::Cow;

use domain::event::UnknownFields;
use serde_json::Value;

use crate::listed::ListedFields;
use crate::reach::Reach;
use crate::{PayloadSchema, Rule, SchemaError, Violation};

/// What is said of a field that is not listed.
const UNLISTED: &str = "is not listed by the schema of the event type, which takes nothing else: leave it out, or have the \
                        schema list it";
/// The same of an example in the catalogue.
const UNLISTED_IN_EXAMPLE: &str = "is not listed by the schema: list it there, or let unknownFields be ALLOW";

/// The rules for payloads of an event type, compiled.
#[derive(Debug)]
pub struct PayloadRules {
    schema: PayloadSchema,
    unknown: UnknownFields,
    listed: Option<ListedFields>,
}

/// What the rules say of a payload.
#[derive(Debug, PartialEq, Eq)]
pub struct Checked<'a> {
    /// The payload as it is passed on: without what was dropped, if anything was.
    pub data: Cow<'a, str>,
    /// What it must not hold, or lacks; empty when all is well. Of very many the first ones.
    pub violations: Vec<Violation>,
}

impl PayloadRules {
    /// Compiles the rules of a type that is to be stored.
    ///
    /// # Errors
    ///
    /// As for [`PayloadSchema::compile`]; and when it cannot be told which fields the schema lists.
    pub fn compile(schema: &Value, unknown: UnknownFields) -> Result<Self, SchemaError> {
        let compiled = PayloadSchema::compile(schema)?;
        if unknown != UnknownFields::Allow && !Reach::of(schema).is_plain() {
            return Err(SchemaError::whole(
                "holds an $id or a reference that is not of the form #/$defs/name, so that it cannot be told which fields it \
                 lists; write it in that form, or let unknownFields be ALLOW"
                    .to_owned(),
            ));
        }
        Ok(Self::of(compiled, schema, unknown))
    }

    /// Compiles the rules of a type that was stored before.
    pub fn compile_stored(schema: &Value, unknown: UnknownFields) -> Result<Self, SchemaError> {
        Ok(Self::of(PayloadSchema::compile_stored(schema)?, schema, unknown))
    }

    fn of(compiled: PayloadSchema, schema: &Value, unknown: UnknownFields) -> Self {
        Self {
            schema: compiled,
            unknown,
            listed: (unknown != UnknownFields::Allow).then(|| ListedFields::of(schema)),
        }
    }

    /// Compares a payload with the rules.
    pub fn check<'a>(&self, payload: &'a str) -> Result<Checked<'a>, serde_json::Error> {
        let mut value: Value = serde_json::from_str(payload)?;
        let mut data = Cow::Borrowed(payload);
        let mut violations = Vec::new();
        if let Some(listed) = &self.listed {
            let cut = listed.cut(payload)?;
            if self.unknown == UnknownFields::Refuse {
                let unlisted = cut.unlisted.into_iter();
                violations = unlisted.map(|pointer| unlisted_at(pointer, UNLISTED)).collect();
            } else if !cut.unlisted.is_empty() {
                value = serde_json::from_str(&cut.kept)?;
                data = Cow::Owned(cut.kept);
            }
        }
        let known: Vec<_> = violations
            .iter()
            .map(|found: &Violation| found.pointer.clone())
            .collect();
        let further = self.schema.violations(&value).into_iter();
        violations.extend(further.filter(|violation| !known.contains(&violation.pointer)));
        Ok(Checked { data, violations })
    }

    /// What keeps a payload from being an example of the type. Nothing is dropped from examples: a reader would wait for it in vain.
    pub(crate) fn example_violations(&self, example: &Value) -> Vec<Violation> {
        let cut = self
            .listed
            .as_ref()
            .map(|listed| listed.cut(&example.to_string()));
        let places = cut
            .and_then(Result::ok)
            .map(|cut| cut.unlisted)
            .unwrap_or_default();
        let unlisted = places
            .into_iter()
            .map(|pointer| unlisted_at(pointer, UNLISTED_IN_EXAMPLE));
        unlisted.chain(self.schema.violations(example)).collect()
    }
}

fn unlisted_at(pointer: String, detail: &str) -> Violation {
    Violation {
        pointer,
        detail: detail.to_owned(),
        rule: Some(Rule::unknown_fields()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const WITH_A_SECRET: &str = r#"{"domain": {"name": "example.org", "authCode": "s3cr3t"}}"#;

    fn schema() -> Value {
        json!({
            "type": "object", "required": ["domain"],
            "properties": {"domain": {"type": "object", "properties": {"name": {"type": "string"}}}},
        })
    }

    fn checked(unknown: UnknownFields, payload: &str) -> (String, Vec<String>) {
        let rules = PayloadRules::compile(&schema(), unknown).unwrap();
        let Checked { data, violations } = rules.check(payload).unwrap();
        let places = violations.into_iter().map(|violation| violation.pointer);
        (data.into_owned(), places.collect())
    }

    #[test]
    fn what_is_not_listed_is_refused_dropped_or_passed_on() {
        let untouched = WITH_A_SECRET.to_owned();
        assert_eq!(
            checked(UnknownFields::Refuse, WITH_A_SECRET),
            (untouched.clone(), vec!["/domain/authCode".to_owned()])
        );
        assert_eq!(
            checked(UnknownFields::Drop, WITH_A_SECRET),
            (r#"{"domain":{"name":"example.org"}}"#.to_owned(), vec![])
        );
        assert_eq!(checked(UnknownFields::Allow, WITH_A_SECRET), (untouched, vec![]));
    }

    #[test]
    fn a_payload_of_listed_fields_stays_as_it_was_written() {
        let payload = r#"{ "domain" : {"name":"\u00e4"} }"#;
        for unknown in UnknownFields::ALL {
            assert_eq!(checked(unknown, payload), (payload.to_owned(), vec![]));
        }
    }

    #[test]
    fn the_schema_judges_what_is_left() {
        for unknown in [UnknownFields::Drop, UnknownFields::Refuse] {
            let (_, places) = checked(unknown, r#"{"domain": {"name": 1}}"#);
            assert_eq!(places, ["/domain/name"]);
        }
        let closed = json!({"properties": {"a": {}}, "additionalProperties": false});
        let rules = PayloadRules::compile(&closed, UnknownFields::Drop).unwrap();
        let checked = rules.check(r#"{"a": 1, "b": 2}"#).unwrap();
        assert_eq!(
            (checked.data.as_ref(), checked.violations),
            (r#"{"a":1}"#, vec![])
        );
    }

    #[test]
    fn references_have_to_be_plain_where_fields_are_told_apart() {
        for schema in [
            json!({"$ref": "#name", "$defs": {"a": {"$anchor": "name"}}}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$id": "x:y"}}}),
        ] {
            let error = PayloadRules::compile(&schema, UnknownFields::Drop).unwrap_err();
            assert!(error.to_string().contains("unknownFields"), "{error}");
            assert!(PayloadRules::compile(&schema, UnknownFields::Allow).is_ok());
        }
    }
}

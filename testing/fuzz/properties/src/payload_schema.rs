//! A payload against a JSON Schema, from `{"schema": …, "payload": …}`: every violation has its place in the payload and
//! repeats nothing of it, they are few, and asking twice or in other words gives the same answer.

use event_schema::PayloadSchema;
use serde_json::{Value, json};

/// Checks the property.
pub fn check(input: &[u8]) {
    let Ok(Value::Object(mut input)) = serde_json::from_slice(input) else {
        return;
    };
    let mut member = |name| input.remove(name).unwrap_or_default();
    let (schema, payload) = (member("schema"), member("payload"));
    let compiled = match PayloadSchema::compile(&schema) {
        Ok(compiled) => compiled,
        Err(error) => {
            assert!(
                error
                    .to_string()
                    .starts_with("is not a JSON Schema that can be used")
            );
            return;
        }
    };
    let violations = compiled.violations(&payload);
    assert!(violations.len() <= 20);
    for violation in &violations {
        assert!(!violation.detail.is_empty());
        assert!(
            payload.pointer(&violation.pointer).is_some(),
            "{violation:?} {payload}"
        );
    }
    assert_eq!(compiled.violations(&payload), violations);
    let text = schema.to_string();
    if !text.contains('$') && schema.is_object() {
        let wrapped = PayloadSchema::compile(&json!({ "allOf": [schema] }))
            .expect("what compiles alone compiles within");
        assert_eq!(wrapped.violations(&payload).is_empty(), violations.is_empty());
    }
}

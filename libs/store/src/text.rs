//! Text of strangers, made such that PostgreSQL can store it: U+0000 becomes U+FFFD.
//!
//! One such character would make the database refuse the whole batch, and refuse it again however often it is tried.

use std::borrow::Cow;

use serde_json::Value;

/// `text` without U+0000.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// `value` without U+0000 in any of its texts and names.
pub(crate) fn storable_json(value: &Value) -> Value {
    match value {
        Value::String(text) => storable(text).into(),
        Value::Array(values) => values.iter().map(storable_json).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (storable(name).into_owned(), storable_json(value)))
            .collect(),
        other => other.clone(),
    }
}

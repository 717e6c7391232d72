//! A sentence with what it was made of.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A sentence, and what it was made of for those who say it in another language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({
    "code": "attempt-failed",
    "params": {"attempt": 2, "errorType": "HTTP", "millis": 31, "status": 503},
    "text": "Attempt 2 failed after 31 ms: the endpoint answered 503."
}))]
pub struct Sentence {
    /// Which sentence it is; stable.
    #[schema(value_type = String, example = "attempt-failed")]
    pub code: &'static str,
    /// What it names, by the name of each part; times are RFC 3339.
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    /// The sentence in English.
    #[schema(example = "Attempt 2 failed after 31 ms: the endpoint answered 503.")]
    pub text: String,
}

impl Sentence {
    /// A sentence that names nothing.
    pub fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self {
            code,
            params: Map::new(),
            text: text.into(),
        }
    }

    /// The same, which names this.
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        named(&mut self.params, name, value);
        self
    }
}

/// Names one more thing.
pub(crate) fn named(params: &mut Map<String, Value>, name: &str, value: impl Serialize) {
    // What cannot be written as JSON is not worth a failure.
    let value = serde_json::to_value(value).unwrap_or_default();
    params.insert(name.to_owned(), value);
}

//! Why a field or a parameter cannot be accepted, for programs.

use std::fmt::Display;

use serde::Serialize;
use utoipa::ToSchema;

/// Why a field or a parameter cannot be accepted. There may be more of them later on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FieldCode {
    /// The request has no such field or parameter; `didYouMean` are those that are like it.
    UnknownField,
    /// It is needed.
    Missing,
    /// It is there twice.
    Duplicate,
    /// It is of another JSON type.
    WrongType,
    /// It is not written as such a value is.
    WrongFormat,
    /// It is none of the values that there are.
    UnknownValue,
    /// It is not between `min` and `max`, or a time that is too early or too late.
    OutOfRange,
    /// It is longer than `max`.
    TooLong,
    /// It does not go with another field, or with what is stored.
    Conflict,
    /// It breaks a rule of its JSON Schema, `keyword`, that none of the others tells.
    Schema,
    /// The URL does not begin with `scheme`.
    UrlScheme,
    /// The URL holds a user name or a password.
    UrlCredentials,
    /// The URL has a fragment.
    UrlFragment,
    /// The URL has a port that is not delivered to.
    UrlPort,
    /// The URL leads to an address that is not delivered to.
    UrlAddress,
    /// Another reason, which the sentence says.
    Refused,
}

impl FieldCode {
    /// Why a parser refused a value, which it says in its sentence alone.
    pub(crate) fn of_parser(error: &impl Display) -> Self {
        const BEGINNINGS: [(&str, FieldCode); 5] = [
            ("invalid type: ", FieldCode::WrongType),
            ("unknown variant ", FieldCode::UnknownValue),
            ("unknown field ", FieldCode::UnknownField),
            ("missing field ", FieldCode::Missing),
            ("duplicate field ", FieldCode::Duplicate),
        ];
        let said = error.to_string();
        let mut beginnings = BEGINNINGS.into_iter();
        let known = beginnings.find(|(begin, _)| said.starts_with(*begin));
        known.map_or(Self::WrongFormat, |(_, code)| code)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::json::{self, Handling};
    use crate::paging;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Lane {
        Push,
    }

    #[derive(Debug, Deserialize)]
    struct Payload {
        lane: Option<Lane>,
        limit: Option<u32>,
        id: Option<Uuid>,
    }

    #[test]
    fn every_field_that_cannot_be_read_says_why_in_a_word() {
        let read = |body: &str| {
            let read = json::read::<Payload>(body.as_bytes(), Handling::Strict);
            read.and_then(|(payload, wrong)| wrong.merge(Ok(payload)))
        };
        let Payload { lane, limit, id } = read(r#"{"lane": "push"}"#).unwrap();
        assert!(matches!((lane, limit, id), (Some(Lane::Push), None, None)));
        let body = r#"{"lane": "pull", "limit": "5", "limmit": 5, "id": "x", "id": "y"}"#;
        let problem = read(body).unwrap_err().example();
        let errors = problem["errors"].as_array().unwrap().iter();
        let told: Vec<_> = errors.map(|error| (&error["field"], &error["code"])).collect();
        let expected = json!([
            ["lane", "unknown-value"],
            ["limit", "wrong-type"],
            ["limmit", "unknown-field"],
            ["id", "wrong-format"],
            ["id", "wrong-format"],
        ]);
        assert_eq!(json!(told), expected);
        assert_eq!(problem["errors"][2]["params"], json!({"didYouMean": ["limit"]}));
        assert!(problem["errors"][0].get("params").is_none(), "{problem}");
        let twice = read(r#"{"limit": 5, "limit": 6}"#).unwrap_err();
        assert_eq!(twice.errors()[0].code, FieldCode::Duplicate);
    }

    #[test]
    fn a_number_out_of_its_bounds_names_them() {
        let problem = paging::limit(Some(201)).unwrap_err();
        let [wrong] = problem.errors() else {
            panic!("{problem:?}");
        };
        assert_eq!(wrong.code, FieldCode::OutOfRange);
        assert_eq!(Value::from(wrong.params.clone()), json!({"min": 1, "max": 200}));
    }

    #[test]
    fn every_code_is_documented() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let read = |name: &str| std::fs::read_to_string(docs.join(name)).unwrap();
        let page = read("site/errors.md");
        // A test of the service compares it with what there is.
        let document: Value = serde_json::from_str(&read("openapi/reseller-portal.json")).unwrap();
        let schema = &document["components"]["schemas"]["FieldCode"];
        for code in schema["enum"].as_array().unwrap() {
            let row = format!("\n| `{}` |", code.as_str().unwrap());
            assert!(page.contains(&row), "{code}");
        }
    }
}

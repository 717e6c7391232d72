//! From the bytes of a body to the fields of a payload, with the place of what cannot be read.
//!
//! It deliberately judges no value: it tells JSON from what is none, and a form from another one.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::kind::ProblemKind;
use crate::problem::{FieldProblem, Problem};

/// Reads a payload, which is a JSON object.
///
/// # Errors
///
/// A [`ProblemKind::MALFORMED_BODY`] for what is not JSON, a [`ProblemKind::VALIDATION`] for JSON of another form, with
/// the place of the first thing that cannot be read.
pub fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    // An array would be read as the fields in the order of their declaration.
    if body.trim_ascii_start().first() == Some(&b'[') {
        return Err(Problem::new(
            ProblemKind::VALIDATION,
            "the body must be a JSON object, but is an array",
        ));
    }
    serde_json::from_slice(body).map_err(|_| explain::<T>(body))
}

/// A value within a body that has to be an object. A list would be read as the fields in the order of their
/// declaration, which no caller means and no document tells.
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members))
            }
        }

        deserializer.deserialize_map(Members(PhantomData)).map(Object)
    }
}

/// Reads a bad body once more, now keeping track of where it is: too slow for the good ones.
fn explain<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Problem {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let (field, error) = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Err(error) => (error.path().to_string(), error.into_inner()),
        Ok(_) => match reader.end() {
            Err(error) => (String::from("."), error),
            Ok(()) => return Problem::new(ProblemKind::MALFORMED_BODY, "the body cannot be read"),
        },
    };
    let (kind, detail) = if error.is_data() {
        (
            ProblemKind::VALIDATION,
            format!("the body is JSON of another form: {error}"),
        )
    } else {
        (
            ProblemKind::MALFORMED_BODY,
            format!("the body is not JSON: {error}"),
        )
    };
    let problem = Problem::new(kind, detail);
    problem.with_errors(vec![FieldProblem {
        // The reader's name for the body as a whole.
        field: if field == "." {
            Cow::Borrowed("")
        } else {
            field.into()
        },
        detail: error.to_string(),
        line: Some(error.line()),
        column: Some(error.column()),
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", expecting = "an object")]
    struct Payload {
        push_key: Option<String>,
        message: Option<String>,
    }

    fn refused(body: &str) -> serde_json::Value {
        read::<Payload>(body.as_bytes()).unwrap_err().example()
    }

    #[test]
    fn a_field_of_the_wrong_type_is_named_with_its_place() {
        let problem = refused("{\"platform\": \"IOS\",\n \"pushKey\": 5}");
        let error = &problem["errors"][0];
        assert_eq!(error["field"], "pushKey");
        assert_eq!(
            (error["line"].as_u64(), error["column"].as_u64()),
            (Some(2), Some(13))
        );
        assert!(
            error["detail"].as_str().unwrap().contains("integer `5`"),
            "{error}"
        );
    }

    #[test]
    fn what_is_not_json_is_shown_with_its_place() {
        for body in [
            "",
            "{",
            "{\"message\": \"a",
            "{} x",
            "\u{feff}{}",
            "{\"message\": tru}",
        ] {
            let problem = refused(body);
            assert!(
                problem["detail"]
                    .as_str()
                    .unwrap()
                    .starts_with("the body is not JSON"),
                "{problem}"
            );
            assert!(problem["errors"][0]["line"].is_u64(), "{problem}");
        }
    }

    #[test]
    fn json_that_is_no_object_is_refused() {
        for body in ["[\"IOS\"]", " []", "\"IOS\"", "5", "null"] {
            let problem = refused(body);
            assert!(
                problem["detail"].as_str().unwrap().contains("object"),
                "{problem}"
            );
        }
    }

    #[test]
    fn a_list_in_the_place_of_an_object_is_refused_wherever_it_stands() {
        #[derive(Debug, Deserialize)]
        struct Many {
            payloads: Vec<Object<Payload>>,
        }
        let read = |body: &str| read::<Many>(body.as_bytes());
        let many = read(r#"{"payloads": [{"message": "a"}]}"#).unwrap();
        assert_eq!(many.payloads[0].0.message.as_deref(), Some("a"));
        let problem = read(r#"{"payloads": [["key", "a"]]}"#).unwrap_err().example();
        assert_eq!(problem["errors"][0]["field"], "payloads[0]");
        let detail = problem["errors"][0]["detail"].as_str().unwrap();
        assert!(detail.contains("expected an object"), "{detail}");
    }

    #[test]
    fn a_field_given_twice_is_refused_and_an_unknown_one_ignored() {
        let problem = refused(r#"{"message": "a", "message": "b"}"#);
        assert!(
            problem["detail"]
                .as_str()
                .unwrap()
                .contains("duplicate field `message`"),
            "{problem}"
        );
        let payload = read::<Payload>(br#"{"message": "a", "priority": {"high": true}}"#).unwrap();
        assert_eq!((payload.message.as_deref(), payload.push_key), (Some("a"), None));
    }
}

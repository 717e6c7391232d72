//! The body of `POST /push`: from bytes to fields, with the place of what cannot be read.
//!
//! Fields that are not known are ignored, so that a caller can be ahead of the service. It deliberately judges no value:
//! that is `domain`'s part.

use std::borrow::Cow;

use serde::Deserialize;
use utoipa::ToSchema;

use crate::problem::{FieldProblem, Problem, ProblemKind};

/// A push to send.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schema(as = PushRequest)]
pub(crate) struct Payload<'a> {
    /// The platform of the client's device.
    #[serde(borrow, default)]
    #[schema(value_type = PlatformName, required = true)]
    pub(crate) platform: Option<Cow<'a, str>>,
    /// Names the message prototype, whose Swrve push key is used. May be absent or unknown: such a push is accepted and
    /// fails when it is to be sent.
    #[serde(default)]
    #[schema(example = "Hello")]
    pub(crate) message_prototype_key: Option<String>,
    /// The client's device id in Swrve.
    #[serde(default)]
    #[schema(value_type = String, required = true, min_length = 1, example = "463B3209-6E33-4E88-AF52-CDA87C0550EC")]
    pub(crate) push_key: Option<String>,
    /// The text of the push.
    #[serde(default)]
    #[schema(value_type = String, required = true, min_length = 1, example = "Hello client!")]
    pub(crate) message: Option<String>,
    /// A Quartz cron expression that describes when the push may be sent, in the time zone `push.timeZone`; at any time
    /// when absent or null.
    #[serde(default)]
    #[schema(example = "* * 9-17 ? * MON-FRI")]
    pub(crate) cron_expression: Option<String>,
}

/// A platform, for the OpenAPI document; whether a name is one is decided by `domain`.
#[derive(ToSchema)]
#[schema(as = Platform, rename_all = "UPPERCASE")]
#[expect(dead_code, reason = "describes a text for the OpenAPI document")]
pub(crate) enum PlatformName {
    /// Apple's.
    Ios,
    /// Google's.
    Android,
}

impl<'a> Payload<'a> {
    /// Reads a body.
    ///
    /// # Errors
    ///
    /// A [`ProblemKind::MalformedBody`] for what is not JSON, a [`ProblemKind::Validation`] for JSON of another form, with
    /// the place of the first thing that cannot be read.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, Problem> {
        // An array would be read as the fields in the order of their declaration.
        if body.trim_ascii_start().first() == Some(&b'[') {
            return Err(Problem::new(
                ProblemKind::Validation,
                "the body must be a JSON object, but is an array",
            ));
        }
        serde_json::from_slice(body).map_err(|_| Self::explain(body))
    }

    /// Reads a bad body once more, now keeping track of where it is: too slow for the good ones.
    fn explain(body: &[u8]) -> Problem {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let (field, error) = match serde_path_to_error::deserialize::<_, Payload<'_>>(&mut reader) {
            Err(error) => (error.path().to_string(), error.into_inner()),
            Ok(_) => match reader.end() {
                Err(error) => (String::from("."), error),
                Ok(()) => return Problem::new(ProblemKind::MalformedBody, "the body cannot be read"),
            },
        };
        let (kind, detail) = if error.is_data() {
            (
                ProblemKind::Validation,
                format!("the body is JSON of another form: {error}"),
            )
        } else {
            (
                ProblemKind::MalformedBody,
                format!("the body is not JSON: {error}"),
            )
        };
        let problem = Problem::new(kind, detail);
        problem.with_errors(vec![FieldProblem {
            // The reader's name for the body as a whole.
            field: if field == "." { "".into() } else { field.into() },
            detail: error.to_string(),
            line: Some(error.line()),
            column: Some(error.column()),
        }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> serde_json::Value {
        Payload::read(body.as_bytes()).unwrap_err().example()
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
    fn a_field_given_twice_is_refused_and_an_unknown_one_ignored() {
        let problem = refused(r#"{"message": "a", "message": "b"}"#);
        assert!(
            problem["detail"]
                .as_str()
                .unwrap()
                .contains("duplicate field `message`"),
            "{problem}"
        );
        let payload = Payload::read(br#"{"message": "a", "priority": {"high": true}}"#).unwrap();
        assert_eq!(payload.message.as_deref(), Some("a"));
    }
}

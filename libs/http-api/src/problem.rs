//! What a caller is told when a request fails: problem details as RFC 9457 has them.
//!
//! It deliberately carries nothing of the error behind it: a problem says what the caller can do, the log says the rest.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use domain::nearest;
use http::{HeaderValue, header};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::field_code::FieldCode;
use crate::kind::ProblemKind;

/// The media type of a problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldProblem {
    /// The field's name, as in the request, or the parameter's; empty for the body as a whole.
    pub field: Cow<'static, str>,
    /// Why it cannot be accepted; stable.
    pub code: FieldCode,
    /// What is wrong with it, as a sentence that begins with its name would go on.
    pub detail: String,
    /// What the sentence names, such as `min`, `max` and `didYouMean`, where it does.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object, required = false)]
    pub params: Map<String, Value>,
    /// Line of the body, from 1, when the body could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Column of the body, in bytes from 1, when the body could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl FieldProblem {
    /// A field that was read but cannot be accepted, for a reason that the sentence alone says.
    pub fn new(field: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            code: FieldCode::Refused,
            detail: detail.into(),
            params: Map::new(),
            line: None,
            column: None,
        }
    }

    /// The same, for this reason.
    pub fn coded(mut self, code: FieldCode) -> Self {
        self.code = code;
        self
    }

    /// The same, which names this.
    pub fn naming(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }

    /// The same, which the request does not have; it names those of `known` that may be meant.
    pub(crate) fn unknown_field(self, known: &[&str]) -> Self {
        let meant = nearest::names(&self.field, known.iter().copied());
        let wrong = self.coded(FieldCode::UnknownField);
        if meant.is_empty() {
            wrong
        } else {
            wrong.naming("didYouMean", meant)
        }
    }

    /// The same, which has to be between these two.
    pub fn between(self, min: impl Into<Value>, max: impl Into<Value>) -> Self {
        self.coded(FieldCode::OutOfRange)
            .naming("min", min)
            .naming("max", max)
    }

    /// The same, which may have this length at most.
    pub fn at_most(self, max: impl Into<Value>) -> Self {
        self.coded(FieldCode::TooLong).naming("max", max)
    }
}

/// A problem on its way to the caller.
// Boxed, so that the results that may hold one stay as small as their values.
#[derive(Debug, Clone)]
pub struct Problem(Box<Occurrence>);

#[derive(Debug, Clone)]
struct Occurrence {
    kind: ProblemKind,
    detail: Cow<'static, str>,
    errors: Vec<FieldProblem>,
    hint: Hint,
}

/// What the caller is to do next, as a header.
#[derive(Debug, Clone, Copy)]
enum Hint {
    None,
    /// `WWW-Authenticate`.
    Challenge(&'static str),
    /// `Retry-After`, in seconds.
    RetryAfter(u32),
}

/// Problem details of RFC 9457.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody<'a> {
    /// Identifies the kind of problem; stable.
    #[serde(rename = "type", serialize_with = "as_uri")]
    #[schema(value_type = String, example = "urn:postrider:problem:validation")]
    uri: ProblemKind,
    /// The same for every problem of the kind.
    #[schema(example = "The request is not acceptable")]
    title: &'static str,
    /// The HTTP status code.
    #[schema(example = 422)]
    status: u16,
    /// What is wrong in this case.
    #[schema(example = "1 field cannot be accepted")]
    detail: &'a str,
    /// The fields that are wrong, when fields are.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<FieldProblem>, required = false)]
    errors: &'a [FieldProblem],
}

fn as_uri<S: Serializer>(kind: &ProblemKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&kind.uri())
}

impl Problem {
    /// A problem of this kind; `detail` says what is wrong in this case.
    pub fn new(kind: ProblemKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Occurrence {
            kind,
            detail: detail.into(),
            errors: Vec::new(),
            hint: Hint::None,
        }))
    }

    /// The caller has to show a valid key. `challenge` is the `WWW-Authenticate` header.
    pub fn unauthorized(detail: &'static str, challenge: &'static str) -> Self {
        let mut problem = Self::new(ProblemKind::UNAUTHORIZED, detail);
        problem.0.hint = Hint::Challenge(challenge);
        problem
    }

    /// The same request may succeed in `seconds`.
    pub fn unavailable(detail: impl Into<Cow<'static, str>>, seconds: u32) -> Self {
        Self::new(ProblemKind::UNAVAILABLE, detail).retry_after(seconds)
    }

    /// Some fields cannot be accepted.
    pub fn fields(errors: Vec<FieldProblem>) -> Self {
        let noun = if errors.len() == 1 { "field" } else { "fields" };
        let detail = format!("{} {noun} cannot be accepted", errors.len());
        Self::new(ProblemKind::VALIDATION, detail).with_errors(errors)
    }

    /// A parameter of the query string holds what cannot be accepted.
    pub fn query(parameter: &'static str, detail: impl Into<String>) -> Self {
        Self::parameter(FieldProblem::new(parameter, detail))
    }

    /// The same of a parameter of which more is known.
    pub fn parameter(wrong: FieldProblem) -> Self {
        let detail = format!("{} {}", wrong.field, wrong.detail);
        Self::new(ProblemKind::INVALID_QUERY, detail).with_errors(vec![wrong])
    }

    /// The same, of whose fields or parameters each cannot be accepted for this reason.
    pub fn coded(mut self, code: FieldCode) -> Self {
        for error in &mut self.0.errors {
            error.code = code;
        }
        self
    }

    /// Names the fields that are wrong.
    pub fn with_errors(mut self, errors: Vec<FieldProblem>) -> Self {
        self.0.errors = errors;
        self
    }

    /// The same, in which what the request does not have but calls by one of `names`, whatever their case and with or without `_` and `-`, is
    /// answered with the field that says it: `advice` is how.
    pub fn meaning(mut self, names: &[&str], field: &str, advice: &str) -> Self {
        let plain = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
        let errors = self.0.errors.iter_mut();
        for error in errors.filter(|error| error.code == FieldCode::UnknownField) {
            if names.contains(&plain(&error.field).as_str()) {
                error.detail = format!("is no field of this request: {advice}");
                error.params.insert("didYouMean".to_owned(), vec![field].into());
            }
        }
        self
    }

    /// What is wrong in this case.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The fields that are wrong.
    pub fn errors(&self) -> &[FieldProblem] {
        &self.0.errors
    }

    /// Both as one, where both are about fields or both about parameters, of which each is named once; else the first.
    pub fn and(mut self, other: Self) -> Self {
        let are_alike =
            self.kind() == other.kind() && !self.0.errors.is_empty() && !other.0.errors.is_empty();
        if are_alike && self.kind() == ProblemKind::INVALID_QUERY {
            for error in other.into_errors() {
                if self.0.errors.iter().all(|known| known.field != error.field) {
                    self.0.errors.push(error);
                }
            }
        } else if are_alike && self.kind() == ProblemKind::VALIDATION {
            let mut errors = self.into_errors();
            errors.extend(other.into_errors());
            return Self::fields(errors);
        }
        self
    }

    pub(crate) fn into_errors(self) -> Vec<FieldProblem> {
        self.0.errors
    }

    /// Tells the caller to try again in `seconds`.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.0.hint = Hint::RetryAfter(seconds);
        self
    }

    /// Its kind.
    pub fn kind(&self) -> ProblemKind {
        self.0.kind
    }

    fn body(&self) -> ProblemBody<'_> {
        ProblemBody {
            uri: self.0.kind,
            title: self.0.kind.title(),
            status: self.0.kind.status().as_u16(),
            detail: &self.0.detail,
            errors: &self.0.errors,
        }
    }

    /// The problem as it looks on the wire, for examples.
    ///
    /// # Panics
    ///
    /// Never: a problem is always valid JSON.
    pub fn example(&self) -> Value {
        serde_json::to_value(self.body())
            .expect("invariant: a struct of strings and numbers is always valid JSON")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body())
            .expect("invariant: a struct of strings and numbers is always valid JSON");
        let content_type = [(header::CONTENT_TYPE, PROBLEM_JSON)];
        let mut response = (self.kind().status(), content_type, body).into_response();
        let hint = match self.0.hint {
            Hint::None => return response,
            Hint::Challenge(challenge) => (header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge)),
            Hint::RetryAfter(seconds) => (header::RETRY_AFTER, HeaderValue::from(seconds)),
        };
        response.headers_mut().insert(hint.0, hint.1);
        response
    }
}

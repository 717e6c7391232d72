//! What a caller is told when a request fails: problem details as RFC 9457 has them.
//!
//! It deliberately carries nothing of the error behind it: a problem says what the caller can do, the log says the rest.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

/// The media type of a problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// Makes the enum and its properties from one list, so that neither can lack an entry.
macro_rules! kinds {
    ($($variant:ident = $name:literal, $status:ident, $title:literal, $meaning:literal;)+) => {
        /// Every problem there is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum ProblemKind {
            $(#[doc = $meaning] $variant,)+
        }

        impl ProblemKind {
            /// All of them, in the order of their status.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable identifier, by which a program tells problems apart.
            pub(crate) fn uri(self) -> &'static str {
                match self { $(Self::$variant => concat!("urn:postrider:problem:", $name)),+ }
            }

            /// The last part of the identifier.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The status code of the answer.
            pub(crate) fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status),+ }
            }

            /// The same for every occurrence.
            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }

            /// When it occurs, and what to do about it.
            pub(crate) fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),+ }
            }
        }
    };
}

kinds! {
    MalformedBody = "malformed-body", BAD_REQUEST, "The body is not readable",
        "The body is not JSON, not an object, or a field has another JSON type than it should; field, line and column say where.";
    InvalidHeader = "invalid-header", BAD_REQUEST, "A header is not valid",
        "The Idempotency-Key is not 1 to 255 visible ASCII characters, or is given twice.";
    Unauthorized = "unauthorized", UNAUTHORIZED, "No valid API key",
        "The Authorization header is missing or malformed, or the API key is unknown or revoked.";
    Forbidden = "forbidden", FORBIDDEN, "The API key does not allow this",
        "The API key is valid, but none of its roles allows the request.";
    NotFound = "not-found", NOT_FOUND, "Nothing is here",
        "No push has this identifier, or the path does not exist.";
    MethodNotAllowed = "method-not-allowed", METHOD_NOT_ALLOWED, "The method is not allowed here",
        "The path exists, but not for this method; the Allow header lists those it has.";
    RequestTimeout = "request-timeout", REQUEST_TIMEOUT, "The request took too long to arrive",
        "The body did not arrive in time. Nothing was stored.";
    BodyTooLarge = "body-too-large", PAYLOAD_TOO_LARGE, "The body is too large",
        "The body is longer than ingest.maxBodyBytes.";
    UnsupportedMediaType = "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "The body is not declared as JSON",
        "The Content-Type is missing or is not a JSON one: application/json, text/json or application/*+json.";
    Validation = "validation", UNPROCESSABLE_ENTITY, "The push is not acceptable",
        "The body was understood, but fields hold what cannot be accepted; every one of them is listed.";
    IdempotencyKeyReused = "idempotency-key-reused", UNPROCESSABLE_ENTITY, "The idempotency key belongs to another request",
        "The Idempotency-Key was used before with another body.";
    Internal = "internal", INTERNAL_SERVER_ERROR, "The request failed on our side",
        "Something that should not happen did; it is in the service's log.";
    Unavailable = "unavailable", SERVICE_UNAVAILABLE, "The service cannot take the request now",
        "The database is away, the service is overloaded or it is about to stop. Retry-After says when to try again.";
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct FieldProblem {
    /// The field's name, as in the request; empty for the body as a whole.
    #[schema(example = "cronExpression")]
    pub(crate) field: Cow<'static, str>,
    /// What is wrong with it.
    #[schema(example = "is not a cron expression: column 3, field minute: 61 is not between 0 and 59")]
    pub(crate) detail: String,
    /// Line of the body, from 1, when the body could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    /// Column of the body, in bytes from 1, when the body could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<usize>,
}

/// A problem on its way to the caller.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
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
pub(crate) struct ProblemBody<'a> {
    /// Identifies the kind of problem; stable.
    #[serde(rename = "type")]
    #[schema(example = "urn:postrider:problem:validation")]
    uri: &'static str,
    /// The same for every problem of the kind.
    #[schema(example = "The push is not acceptable")]
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

impl Problem {
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            errors: Vec::new(),
            hint: Hint::None,
        }
    }

    /// The caller has to show a valid key. `challenge` is the `WWW-Authenticate` header.
    pub(crate) fn unauthorized(detail: &'static str, challenge: &'static str) -> Self {
        Self {
            hint: Hint::Challenge(challenge),
            ..Self::new(ProblemKind::Unauthorized, detail)
        }
    }

    /// The same request may succeed in `seconds`.
    pub(crate) fn unavailable(detail: &'static str, seconds: u32) -> Self {
        Self {
            hint: Hint::RetryAfter(seconds),
            ..Self::new(ProblemKind::Unavailable, detail)
        }
    }

    /// Names the fields that are wrong.
    pub(crate) fn with_errors(mut self, errors: Vec<FieldProblem>) -> Self {
        self.errors = errors;
        self
    }

    fn body(&self) -> ProblemBody<'_> {
        ProblemBody {
            uri: self.kind.uri(),
            title: self.kind.title(),
            status: self.kind.status().as_u16(),
            detail: &self.detail,
            errors: &self.errors,
        }
    }

    /// The problem as it looks on the wire, for examples.
    pub(crate) fn example(&self) -> serde_json::Value {
        serde_json::to_value(self.body())
            .expect("invariant: a struct of strings and numbers is always valid JSON")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body())
            .expect("invariant: a struct of strings and numbers is always valid JSON");
        let content_type = [(header::CONTENT_TYPE, PROBLEM_JSON)];
        let mut response = (self.kind.status(), content_type, body).into_response();
        let hint = match self.hint {
            Hint::None => return response,
            Hint::Challenge(challenge) => (header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge)),
            Hint::RetryAfter(seconds) => (header::RETRY_AFTER, HeaderValue::from(seconds)),
        };
        response.headers_mut().insert(hint.0, hint.1);
        response
    }
}

//! The kinds of problems that every HTTP API can have.

use http::StatusCode;

/// A kind of problem. Those that every service can have are constants here; a service makes its own beside them with
/// [`ProblemKind::new`], also as constants, so that the list of what can go wrong stays readable in one place.
#[derive(Debug, Clone, Copy)]
pub struct ProblemKind {
    name: &'static str,
    status: StatusCode,
    title: &'static str,
    meaning: &'static str,
}

/// The name alone identifies a kind; a service may word a meaning for what it serves.
impl PartialEq for ProblemKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ProblemKind {}

impl ProblemKind {
    /// The body is not readable.
    pub const MALFORMED_BODY: Self = Self::new(
        "malformed-body",
        StatusCode::BAD_REQUEST,
        "The body is not readable",
        "The body is not JSON; line and column say where. JSON of another form than the request has is `validation`.",
    );
    /// A header is not valid.
    pub const INVALID_HEADER: Self = Self::new(
        "invalid-header",
        StatusCode::BAD_REQUEST,
        "A header is not valid",
        "The Idempotency-Key is not 1 to 255 visible ASCII characters, or is given twice.",
    );
    /// The query string holds what cannot be understood.
    pub const INVALID_QUERY: Self = Self::new(
        "invalid-query",
        StatusCode::BAD_REQUEST,
        "The query is not valid",
        "A parameter of the query string is unknown or holds what cannot be accepted; each that is unknown or not of its form is listed, of those out of bounds the first.",
    );
    /// The API key is missing or unknown.
    pub const UNAUTHORIZED: Self = Self::new(
        "unauthorized",
        StatusCode::UNAUTHORIZED,
        "No valid API key",
        "The Authorization header is missing or malformed, or the API key is unknown, revoked or expired.",
    );
    /// The API key does not allow this.
    pub const FORBIDDEN: Self = Self::new(
        "forbidden",
        StatusCode::FORBIDDEN,
        "This is not allowed",
        "The API key is valid, but none of its roles allows the request.",
    );
    /// Nothing is here.
    pub const NOT_FOUND: Self = Self::new(
        "not-found",
        StatusCode::NOT_FOUND,
        "Nothing is here",
        "Nothing has this identifier, or the path does not exist.",
    );
    /// The path does not have this method.
    pub const METHOD_NOT_ALLOWED: Self = Self::new(
        "method-not-allowed",
        StatusCode::METHOD_NOT_ALLOWED,
        "The method is not allowed here",
        "The path exists, but not for this method; the Allow header lists those it has.",
    );
    /// The body took too long to arrive.
    pub const REQUEST_TIMEOUT: Self = Self::new(
        "request-timeout",
        StatusCode::REQUEST_TIMEOUT,
        "The request took too long to arrive",
        "The body did not arrive in time. Nothing was stored.",
    );
    /// The state of what is asked about does not allow the request now.
    pub const CONFLICT: Self = Self::new(
        "conflict",
        StatusCode::CONFLICT,
        "The present state does not allow this",
        "The request is understood and allowed, but not in the state in which things are now.",
    );
    /// The body is too large.
    pub const BODY_TOO_LARGE: Self = Self::new(
        "body-too-large",
        StatusCode::PAYLOAD_TOO_LARGE,
        "The body is too large",
        "The body is longer than is allowed here.",
    );
    /// The body is not declared as JSON.
    pub const UNSUPPORTED_MEDIA_TYPE: Self = Self::new(
        "unsupported-media-type",
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "The body is not declared as JSON",
        "The Content-Type is missing or is not a JSON one: application/json, text/json or application/*+json.",
    );
    /// Fields hold what cannot be accepted.
    pub const VALIDATION: Self = Self::new(
        "validation",
        StatusCode::UNPROCESSABLE_ENTITY,
        "The request is not acceptable",
        "The body was understood, but fields hold what cannot be accepted; every one of them is listed.",
    );
    /// The idempotency key belongs to another request.
    pub const IDEMPOTENCY_KEY_REUSED: Self = Self::new(
        "idempotency-key-reused",
        StatusCode::UNPROCESSABLE_ENTITY,
        "The idempotency key belongs to another request",
        "The Idempotency-Key was used before with another body.",
    );
    /// A failure of ours.
    pub const INTERNAL: Self = Self::new(
        "internal",
        StatusCode::INTERNAL_SERVER_ERROR,
        "The request failed on our side",
        "Something that should not happen did; the operators find it in the log.",
    );
    /// The caller asks too much.
    pub const TOO_MANY_REQUESTS: Self = Self::new(
        "too-many-requests",
        StatusCode::TOO_MANY_REQUESTS,
        "Too many requests",
        "The caller has shown more unknown API keys than are looked up in so short a time; nothing is said about this one. \
         Retry-After says when to try again.",
    );
    /// The same request may succeed later.
    pub const UNAVAILABLE: Self = Self::new(
        "unavailable",
        StatusCode::SERVICE_UNAVAILABLE,
        "The service cannot take the request now",
        "The database is away, the service is overloaded or it is about to stop. Retry-After says when to try again.",
    );

    /// A kind of a service's own. `name` is the last part of the stable identifier, `title` the same for every
    /// occurrence, `meaning` tells when it occurs and what to do about it.
    pub const fn new(
        name: &'static str,
        status: StatusCode,
        title: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self {
            name,
            status,
            title,
            meaning,
        }
    }

    /// The same kind with a meaning in the words of what a service serves.
    pub const fn meant(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    /// The stable identifier, by which a program tells problems apart.
    pub fn uri(self) -> String {
        format!("urn:postrider:problem:{}", self.name)
    }

    /// The last part of the identifier.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The status code of the answer.
    pub const fn status(self) -> StatusCode {
        self.status
    }

    /// The same for every occurrence.
    pub const fn title(self) -> &'static str {
        self.title
    }

    /// When it occurs, and what to do about it.
    pub const fn meaning(self) -> &'static str {
        self.meaning
    }
}

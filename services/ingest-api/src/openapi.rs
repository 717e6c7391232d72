//! The OpenAPI document: what the handlers say about themselves, and the problems that each of them can answer with.

use http::StatusCode;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Object, Ref, Response, ResponseBuilder, Type};
use utoipa::{Modify, OpenApi};

use crate::problem::{FieldProblem, PROBLEM_JSON, Problem, ProblemBody, ProblemKind};
use crate::{lookup, payload, router, submit};

/// The document, as served at `/openapi.json`.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Postrider ingest API",
        description = "Takes push notifications in and tells what has become of them.\n\n\
            What was answered 2xx is stored durably and survives the crash of any process. Everything but a success is \
            answered with problem details (RFC 9457, application/problem+json); the member `type` tells problems apart \
            and is stable.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers((url = "/", description = "The server that this document comes from.")),
    tags(
        (name = "push", description = "Pushes."),
        (name = "service", description = "The service itself; no API key is needed."),
    ),
    paths(submit::submit, lookup::find, healthz, readyz, router::openapi, router::docs),
    components(schemas(payload::Payload, lookup::PushDocument, ProblemBody, FieldProblem, Readiness)),
    modifiers(&ApiKeys, &Problems),
)]
struct Document;

/// Tells that the process is alive.
#[utoipa::path(
    get, path = "/healthz", tag = "service", operation_id = "healthz",
    responses((status = 200, description = "The process can answer.", body = String, content_type = "text/plain",
        example = "ok\n"))
)]
#[expect(dead_code, reason = "describes a handler of another crate")]
fn healthz() {}

/// Tells whether the process can do its work.
///
/// While only the broker is missing pushes are still accepted; they wait in the database.
#[utoipa::path(
    get, path = "/readyz", tag = "service", operation_id = "readyz",
    responses(
        (status = 200, description = "Every condition holds.", body = Readiness,
            example = json!({"ready": true, "conditions": {"broker": null, "database": null, "migrations": null, "queue": null}})),
        (status = 503, description = "A condition does not hold.", body = Readiness,
            example = json!({"ready": false,
                "conditions": {"broker": "connecting", "database": null, "migrations": null, "queue": null}})),
    )
)]
#[expect(dead_code, reason = "describes a handler of another crate")]
fn readyz() {}

/// The conditions under which the process can work.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "describes a type of another crate")]
struct Readiness {
    /// Whether all conditions hold.
    ready: bool,
    /// For each condition null when it holds, else why it does not.
    conditions: std::collections::BTreeMap<String, Option<String>>,
}

struct ApiKeys;

impl Modify for ApiKeys {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("pr_ and 64 hexadecimal digits")
            .description(Some(
                "An API key, made with `postrider keys create`. Handing in pushes needs the role ingest or admin; looking \
                 at them any role. A revoked key is refused within 5 seconds.",
            ))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("apiKey", SecurityScheme::Http(scheme));
    }
}

struct Problems;

/// What both operations on pushes can answer.
const ALWAYS: [ProblemKind; 4] = [
    ProblemKind::Unauthorized,
    ProblemKind::Forbidden,
    ProblemKind::Internal,
    ProblemKind::Unavailable,
];
const OF_SUBMIT: [ProblemKind; 7] = [
    ProblemKind::MalformedBody,
    ProblemKind::InvalidHeader,
    ProblemKind::RequestTimeout,
    ProblemKind::BodyTooLarge,
    ProblemKind::UnsupportedMediaType,
    ProblemKind::Validation,
    ProblemKind::IdempotencyKeyReused,
];
const OF_FIND: [ProblemKind; 1] = [ProblemKind::NotFound];

impl Modify for Problems {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let paths = &mut document.paths.paths;
        if let Some(submit) = paths.get_mut("/push").and_then(|path| path.post.as_mut()) {
            add_problems(submit, &[&ALWAYS[..], &OF_SUBMIT[..]].concat());
        }
        if let Some(find) = paths.get_mut("/push/{id}").and_then(|path| path.get.as_mut()) {
            add_problems(find, &[&ALWAYS[..], &OF_FIND[..]].concat());
        }
    }
}

/// Adds one response per status, with an example of each kind that has it.
fn add_problems(operation: &mut Operation, kinds: &[ProblemKind]) {
    for kind in ProblemKind::ALL {
        let status = kind.status();
        let same: Vec<ProblemKind> = kinds
            .iter()
            .copied()
            .filter(|other| other.status() == status)
            .collect();
        if same.first() == Some(kind) {
            let responses = &mut operation.responses.responses;
            responses.insert(status.as_str().to_owned(), response(status, &same).into());
        }
    }
}

fn response(status: StatusCode, kinds: &[ProblemKind]) -> Response {
    let meanings: Vec<&str> = kinds.iter().map(|kind| kind.meaning()).collect();
    let examples = kinds.iter().map(|kind| {
        let example = ExampleBuilder::new()
            .summary(kind.title())
            .value(Some(example(*kind).example()))
            .build();
        (kind.name(), example)
    });
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .examples_from_iter(examples)
        .build();
    let response = ResponseBuilder::new()
        .description(meanings.join(" Or: "))
        .content(PROBLEM_JSON, content);
    let header = |description, kind| {
        HeaderBuilder::new()
            .description(Some(description))
            .schema(Some(Object::with_type(kind)))
            .build()
    };
    match status {
        StatusCode::UNAUTHORIZED => response.header(
            "WWW-Authenticate",
            header("Says that a bearer token is expected.", Type::String),
        ),
        StatusCode::SERVICE_UNAVAILABLE => response.header(
            "Retry-After",
            header("After how many seconds to try again.", Type::Integer),
        ),
        _ => response,
    }
    .build()
}

/// A typical occurrence.
fn example(kind: ProblemKind) -> Problem {
    let wrong = |field: &'static str, detail: &str, place: Option<(usize, usize)>| FieldProblem {
        field: field.into(),
        detail: detail.to_owned(),
        line: place.map(|(line, _)| line),
        column: place.map(|(_, column)| column),
    };
    match kind {
        ProblemKind::MalformedBody => {
            let detail = "invalid type: integer `5`, expected a string at line 2 column 13";
            Problem::new(kind, format!("the body is JSON of another form: {detail}"))
                .with_errors(vec![wrong("pushKey", detail, Some((2, 13)))])
        }
        ProblemKind::Validation => Problem::new(kind, "2 fields cannot be accepted").with_errors(vec![
            wrong("platform", "is \"BEOS\", but must be IOS or ANDROID", None),
            wrong("message", "must be a string that is not blank", None),
        ]),
        ProblemKind::NotFound => Problem::new(kind, "no push has this identifier"),
        ProblemKind::Unavailable => Problem::unavailable("the push cannot be stored now", 5),
        _ => Problem::new(kind, kind.meaning()),
    }
}

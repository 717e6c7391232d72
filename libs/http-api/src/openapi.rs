//! The parts that the OpenAPI documents of all services share: the API key, the probes, and problems as answers.

use http::StatusCode;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder};
use utoipa::openapi::{Object, Type};

use crate::kind::ProblemKind;
use crate::problem::{FieldProblem, PROBLEM_JSON, Problem};

// What `#[openapi(paths(…))]` needs besides the handlers themselves is generated next to them.
pub use crate::documents::{__path_docs, __path_openapi};

/// Tells that the process is alive.
#[utoipa::path(
    get, path = "/healthz", tag = "service", operation_id = "healthz",
    responses((status = 200, description = "The process can answer.", body = String, content_type = "text/plain",
        example = "ok\n"))
)]
pub fn healthz() {}

/// The conditions under which the process can work.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "describes a type of another crate")]
pub struct Readiness {
    /// Whether all conditions hold.
    ready: bool,
    /// For each condition null when it holds, else why it does not.
    conditions: std::collections::BTreeMap<String, Option<String>>,
}

/// Completes what the handlers say about themselves. `keys` says where API keys come from and which role allows what;
/// `problems` are typical occurrences of what an operation that needs a key can answer, by its method and path. Of every operation
/// that names no security it says that it needs none: what is missing could have been forgotten. The document has to have
/// [`ProblemBody`](crate::ProblemBody) and [`FieldProblem`] among its schemas.
pub fn complete(
    mut document: OpenApi,
    keys: &str,
    problems: impl Fn(&str, &str, &Operation) -> Vec<Problem>,
) -> OpenApi {
    add_api_key(&mut document, keys);
    for (path, item) in &mut document.paths.paths {
        let operations = [
            ("GET", &mut item.get),
            ("PUT", &mut item.put),
            ("POST", &mut item.post),
            ("PATCH", &mut item.patch),
            ("DELETE", &mut item.delete),
        ];
        for (method, operation) in operations {
            let Some(operation) = operation else { continue };
            if operation.security.is_some() {
                let problems = problems(method, path, operation);
                add_problems(operation, &problems);
            }
            operation.security.get_or_insert_default();
        }
    }
    document
}

fn add_api_key(document: &mut OpenApi, description: &str) {
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("pr_ and 64 hexadecimal digits")
        .description(Some(description))
        .build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("apiKey", SecurityScheme::Http(scheme));
}

/// What an operation can answer by what it takes. The texts are typical: what cannot be read now, what bounds a body, and which
/// field of a body is wrong.
pub fn usual_problems(
    operation: &Operation,
    unavailable: &'static str,
    too_large: &'static str,
    wrong: FieldProblem,
) -> Vec<Problem> {
    let mut problems = vec![
        typical(ProblemKind::UNAUTHORIZED),
        typical(ProblemKind::FORBIDDEN),
        typical(ProblemKind::INTERNAL),
        Problem::unavailable(unavailable, 5),
    ];
    let takes = |place: &ParameterIn| {
        let mut parameters = operation.parameters.iter().flatten();
        parameters.any(|parameter| matches!(parameter, RefOr::T(it) if it.parameter_in == *place))
    };
    if takes(&ParameterIn::Path) {
        problems.push(typical(ProblemKind::NOT_FOUND));
    }
    if operation.request_body.is_some() {
        problems.extend([
            typical(ProblemKind::MALFORMED_BODY),
            typical(ProblemKind::REQUEST_TIMEOUT),
            typical(ProblemKind::BODY_TOO_LARGE.meant(too_large)),
            typical(ProblemKind::UNSUPPORTED_MEDIA_TYPE),
            Problem::fields(vec![wrong]),
        ]);
    }
    if takes(&ParameterIn::Query) {
        problems.push(typical(ProblemKind::INVALID_QUERY));
    }
    problems
}

/// A problem whose kind says everything.
pub fn typical(kind: ProblemKind) -> Problem {
    Problem::new(kind, kind.meaning())
}

/// Adds to an operation one response per status, with an example of each problem that has it.
fn add_problems(operation: &mut Operation, problems: &[Problem]) {
    for (position, problem) in problems.iter().enumerate() {
        let status = problem.kind().status();
        let has_it = |other: &&Problem| other.kind().status() == status;
        if problems[..position].iter().any(|earlier| has_it(&earlier)) {
            continue;
        }
        let same: Vec<&Problem> = problems.iter().filter(has_it).collect();
        let responses = &mut operation.responses.responses;
        responses.insert(status.as_str().to_owned(), response(status, &same).into());
    }
}

fn response(status: StatusCode, problems: &[&Problem]) -> Response {
    let meanings: Vec<&str> = problems.iter().map(|problem| problem.kind().meaning()).collect();
    let examples = problems.iter().map(|problem| {
        let example = ExampleBuilder::new()
            .summary(problem.kind().title())
            .value(Some(problem.example()))
            .build();
        (problem.kind().name(), example)
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

#[cfg(test)]
mod tests {
    use utoipa::openapi::path::OperationBuilder;

    use super::*;

    const OWN: ProblemKind = ProblemKind::new(
        "too-many",
        StatusCode::UNPROCESSABLE_ENTITY,
        "There are too many",
        "As many as may be are there already.",
    );

    #[test]
    fn problems_of_one_status_share_a_response_with_an_example_of_each() {
        let mut operation = OperationBuilder::new().build();
        let problems = [
            typical(ProblemKind::VALIDATION),
            typical(ProblemKind::UNAUTHORIZED),
            typical(OWN),
        ];
        add_problems(&mut operation, &problems);
        let document = serde_json::to_value(&operation).unwrap();
        let responses = document["responses"].as_object().unwrap();
        assert_eq!(responses.keys().collect::<Vec<_>>(), ["401", "422"]);
        let content = &responses["422"]["content"][PROBLEM_JSON];
        let examples = content["examples"].as_object().unwrap();
        assert_eq!(examples.len(), 2);
        assert_eq!(
            examples["too-many"]["value"]["type"],
            "urn:postrider:problem:too-many"
        );
        let meaning = responses["422"]["description"].as_str().unwrap();
        assert!(meaning.contains(" Or: As many as may be"), "{meaning}");
        assert!(responses["401"]["headers"]["WWW-Authenticate"].is_object());
    }
}

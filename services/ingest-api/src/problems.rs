//! What each operation can answer instead of a success, as typical occurrences: for the OpenAPI document.

use http_api::openapi::typical;
use http_api::{FieldCode, FieldProblem, Problem, ProblemKind};

use crate::event::idempotency::EVENT_ID_REUSED;

/// The problems of an operation; none for those that need no key.
pub(crate) fn of(method: &str, path: &str) -> Vec<Problem> {
    let further = match (method, path) {
        ("POST", "/push") => of_body("The body is longer than ingest.maxBodyBytes.", wrong_push()),
        ("POST", "/events") => {
            let body = of_body("The body is longer than ingest.maxBodyBytes.", wrong_event(""));
            [body, vec![event_id_reused("")]].concat()
        }
        ("POST", "/events/batch") => {
            let meaning = "The body is longer than a batch may be.";
            let body = of_body(meaning, wrong_event("events[3]."));
            [body, vec![event_id_reused("events[3].")]].concat()
        }
        ("GET", "/push/{id}") => not_found(
            "No push has this identifier, or the path does not exist.",
            "no push has this identifier",
        ),
        ("GET", "/events/{id}") => not_found(
            "No event has this identifier, or the path does not exist.",
            "no event has this identifier",
        ),
        ("GET", "/events") => not_found(
            "The reseller has no event of this eventId, or the eventId is forgotten.",
            "the reseller has no event of this eventId, or it is forgotten",
        ),
        ("GET", "/event-types") => vec![typical(ProblemKind::INVALID_QUERY)],
        ("GET" | "DELETE", "/event-types/{name}") => not_found(
            "The catalogue has no event type of this name, or the path does not exist.",
            "the catalogue has no event type of this name",
        ),
        ("PUT", "/event-types/{name}") => {
            let wrong = vec![long_name("example")];
            let mut problems = of_body("The body is longer than ingest.maxBodyBytes.", wrong);
            problems.retain(|problem| {
                let kind = problem.kind();
                kind != ProblemKind::INVALID_HEADER && kind != ProblemKind::IDEMPOTENCY_KEY_REUSED
            });
            problems
        }
        _ => return Vec::new(),
    };
    [always(path), further].concat()
}

/// What every operation that needs a key can answer.
fn always(path: &str) -> Vec<Problem> {
    let unavailable = match path {
        "/push" | "/push/{id}" => "the push cannot be stored now",
        "/events" | "/events/batch" => "the event cannot be stored now",
        "/events/{id}" => "the event cannot be read now",
        _ => "the event type cannot be read now",
    };
    vec![
        typical(ProblemKind::UNAUTHORIZED),
        typical(ProblemKind::FORBIDDEN),
        typical(ProblemKind::TOO_MANY_REQUESTS),
        typical(ProblemKind::INTERNAL),
        Problem::unavailable(unavailable, 5),
    ]
}

/// What every operation that takes a body can answer.
fn of_body(too_large: &'static str, wrong: Vec<FieldProblem>) -> Vec<Problem> {
    let place = FieldProblem {
        line: Some(2),
        column: Some(13),
        ..FieldProblem::new("", "expected value at line 2 column 13").coded(FieldCode::WrongFormat)
    };
    vec![
        Problem::new(
            ProblemKind::MALFORMED_BODY,
            "the body is not JSON: expected value at line 2 column 13",
        )
        .with_errors(vec![place]),
        typical(ProblemKind::INVALID_QUERY),
        typical(ProblemKind::INVALID_HEADER),
        typical(ProblemKind::REQUEST_TIMEOUT),
        typical(ProblemKind::BODY_TOO_LARGE.meant(too_large)),
        typical(ProblemKind::UNSUPPORTED_MEDIA_TYPE),
        Problem::fields(wrong),
        typical(ProblemKind::IDEMPOTENCY_KEY_REUSED),
    ]
}

fn wrong_push() -> Vec<FieldProblem> {
    vec![
        FieldProblem::new("platform", "is \"BEOS\", but must be IOS or ANDROID")
            .coded(FieldCode::UnknownValue),
        FieldProblem::new("message", "must be a string that is not blank").coded(FieldCode::Missing),
    ]
}

fn wrong_event(place: &str) -> Vec<FieldProblem> {
    vec![
        FieldProblem::new(format!("{place}type"), "is not in the catalogue of event types")
            .coded(FieldCode::UnknownValue),
        long_name(&format!("{place}data")),
    ]
}

/// What breaks a rule of its schema.
fn long_name(payload: &str) -> FieldProblem {
    let detail = "value is longer than 253 characters";
    FieldProblem::new(format!("{payload}/domain/name"), detail)
        .at_most(253)
        .naming("keyword", "maxLength")
        .naming("schemaPath", "/properties/domain/properties/name/maxLength")
}

fn event_id_reused(place: &str) -> Problem {
    let detail = "was used before for an event with another type, time or data";
    let wrong = FieldProblem::new(format!("{place}eventId"), detail).coded(FieldCode::Conflict);
    typical(EVENT_ID_REUSED).with_errors(vec![wrong])
}

/// What every operation without a body can answer that is about one thing.
fn not_found(meaning: &'static str, detail: &'static str) -> Vec<Problem> {
    vec![
        Problem::new(ProblemKind::NOT_FOUND.meant(meaning), detail),
        typical(ProblemKind::INVALID_QUERY),
    ]
}

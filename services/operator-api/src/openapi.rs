//! The OpenAPI document: what the handlers say about themselves, and the problems that each of them can answer with.

use http_api::openapi::{Readiness, complete, typical, usual_problems};
use http_api::{FieldCode, FieldProblem, Problem, ProblemBody, ProblemKind};
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;

use crate::resolve::CANCELLED;
use crate::router::routes;

/// Where keys come from, and what they allow.
const KEYS: &str = "An API key of the role viewer (may look), operator or admin (may look and act), made with \
            `postrider keys create --role operator`. A revoked key is refused within 5 seconds.";

/// The document, as served at `/openapi.json`.
pub fn document() -> utoipa::openapi::OpenApi {
    complete(routes().into_openapi(), KEYS, |_, _, operation| {
        problems_of(operation)
    })
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Postrider operator API",
        description = "For the operators of the installation: what is out of order, why, and what mends it.\n\n\
            Keys of the roles viewer, operator and admin may look; those of operator and admin may also act. Every act is \
            recorded with the name of its key, and most of them take a `note` that says why. Lists come in parts: `next` of \
            one part is the `cursor` of the following one. Everything but a success is answered with problem details (RFC \
            9457, application/problem+json); the member `type` tells problems apart and is stable.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers((url = "/", description = "The server that this document comes from.")),
    tags(
        (name = "dead letters", description = "What will not be delivered without help: finding, replaying and discarding it."),
        (name = "audit", description = "Who changed what, when, and why."),
        (name = "pauses", description = "Stopping a lane, a subscription or all of a reseller for a while."),
        (name = "cancel", description = "Not sending what has not been sent yet."),
        (name = "retries", description = "Making retries at once that wait for their time."),
        (name = "restore", description = "Bringing back at once what comes back by itself in time."),
        (name = "quota requests", description = "What resellers ask for; administrators decide."),
        (name = "keys", description = "Who has access; administrators give it and take it."),
        (name = "portal visits", description = "Seeing what a reseller sees, and who is in the dashboards of resellers; administrators end a visit."),
        (name = "event types", description = "The catalogue that events are checked against; administrators retire a type."),
        (name = "mails", description = "What resellers are told by mail."),
        (name = "search", description = "Finding pushes, events, notifications, subscriptions and resellers."),
        (name = "status", description = "How the system is, and what became of one thing."),
        (name = "service", description = "The service itself; no API key is needed."),
    ),
    paths(
        http_api::openapi::healthz, readyz, http_api::openapi::openapi, http_api::openapi::docs,
    ),
    components(schemas(ProblemBody, FieldProblem, Readiness)),
)]
pub(crate) struct Service;

/// Tells whether the process can do its work.
#[utoipa::path(
    get, path = "/readyz", tag = "service", operation_id = "readyz",
    responses(
        (status = 200, description = "Every condition holds.", body = Readiness,
            example = json!({"ready": true, "conditions": {"broker": null, "database": null, "migrations": null}})),
        (status = 503, description = "A condition does not hold.", body = Readiness,
            example = json!({"ready": false, "conditions": {"broker": "connecting", "database": null, "migrations": null}})),
    )
)]
#[expect(dead_code, reason = "describes a handler of another crate")]
fn readyz() {}

/// What an operation can answer.
fn problems_of(operation: &Operation) -> Vec<Problem> {
    let mut problems = usual_problems(
        operation,
        "the dead letters cannot be read now",
        "The body is longer than operator.maxBodyBytes.",
        FieldProblem::new(
            "note",
            "is needed here: say why, for later readers of the records",
        )
        .coded(FieldCode::Missing),
    );
    problems.push(typical(ProblemKind::TOO_MANY_REQUESTS));
    let name = operation.operation_id.as_deref().unwrap_or_default();
    problems.extend(conflict_of(name));
    if name == "replayDeadLetter" {
        problems.push(typical(CANCELLED));
    }
    problems
}

/// Why the present state may not allow an operation, by its `operation_id`: a typical `detail` of a conflict.
const CONFLICTS: &[(&str, &str)] = &[
    ("replayDeadLetter", "the dead letter was replayed before"),
    ("discardDeadLetter", "the dead letter was replayed before"),
    (
        "createDeadLetterJob",
        "no open dead letter matches, so that there is nothing to do",
    ),
    (
        "noteDeadLetterGroup",
        "no dead letter has this lane, fingerprint and target; GET /dead-letters/groups shows those that there are",
    ),
    ("changeDeadLetterJob", "the job has ended before: it is COMPLETED"),
    (
        "revokeKey",
        "it is the last key of an administrator: make another one first",
    ),
    ("pauseDeadLetterJob", "the job has ended before: it is COMPLETED"),
    ("resumeDeadLetterJob", "the job has ended before: it is COMPLETED"),
    ("cancelDeadLetterJob", "the job has ended before: it is COMPLETED"),
    (
        "createPortalLink",
        "portal.publicUrl is not set: a link begins with where browsers reach the reseller portal",
    ),
    ("cancelPush", "the push has ended before: it is SENT"),
    ("retryPushNow", "the push waits for no retry: it is SENT"),
    (
        "retryNotificationNow",
        "the notification waits for no retry: it is SENT",
    ),
    ("approveQuotaRequest", "the quota request is APPROVED already"),
    ("denyQuotaRequest", "the quota request is APPROVED already"),
    (
        "cancelNotification",
        "the notification has ended before: it is SENT",
    ),
];

fn conflict_of(operation: &str) -> Option<Problem> {
    let found = CONFLICTS.iter().find(|(name, _)| *name == operation);
    found.map(|(_, detail)| Problem::new(ProblemKind::CONFLICT, *detail))
}

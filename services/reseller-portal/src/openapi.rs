//! The OpenAPI document: what the handlers say about themselves, and the problems that each of them can answer with.

use http_api::openapi::{Readiness, complete, typical, usual_problems};
use http_api::{FieldCode, FieldProblem, Problem, ProblemBody, ProblemKind};
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;

use crate::problems::{
    CHANGED_MEANWHILE, CODE_VOID, LAST_SECRET, NOTIFICATION_BEYOND, NOTIFICATION_CANCELLED,
    NOTIFICATION_UNFINISHED, QUOTA_REQUEST_DECIDED, QUOTA_REQUEST_OPEN, REPLAY_COMPLETED, REPLAY_RUNNING,
    SUBSCRIPTION_STATE, TOO_MANY_MATCH, TOO_MANY_REQUESTS, TOO_MANY_SECRETS, TOO_MANY_SUBSCRIPTIONS,
};
use crate::router::routes;

/// Where keys come from, and what they allow.
const KEYS: &str = "An API key, made with `postrider keys create --role reseller --reseller ID`, or with the role \
            `reseller-viewer`, which changes nothing; keys of the house are refused. A revoked key is refused within 5 \
            seconds.";

/// The document, as served at `/openapi.json`.
pub fn document() -> utoipa::openapi::OpenApi {
    complete(routes().into_openapi(), KEYS, |_, _, operation| {
        problems_of(operation)
    })
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Postrider reseller API",
        description = "For resellers: where notifications about their domains and contacts go, and what became of them.\n\n\
            Everything that is seen and changed here belongs to the reseller of the API key; what belongs to another one is \
            not found. Lists come in parts: `next` of one part is the `cursor` of the following one. Everything but a success \
            is answered with problem details (RFC 9457, application/problem+json); the member `type` tells problems apart \
            and is stable.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers((url = "/", description = "The server that this document comes from.")),
    tags(
        (name = "overview", description = "Everything in one look."),
        (name = "subscriptions", description = "Endpoints, and which events they get."),
        (name = "secrets", description = "What notifications are signed with."),
        (name = "event types", description = "What there is to subscribe to."),
        (name = "quotas", description = "How much a subscription may get."),
        (name = "notifications", description = "What was sent, is sent and will be sent."),
        (name = "replays", description = "Sending again what was missed."),
        (name = "metrics", description = "Deliveries in numbers."),
        (name = "visits", description = "One-time links that open the dashboard, and the visits that they began."),
        (name = "activity", description = "Who did what, and what was told by mail."),
        (name = "service", description = "The service itself; no API key is needed."),
    ),
    paths(
        http_api::openapi::healthz, readyz, http_api::openapi::openapi, docs, openapi_page,
    ),
    components(schemas(ProblemBody, FieldProblem, Readiness)),
)]
pub(crate) struct Service;

/// Tells whether the process can do its work.
#[utoipa::path(
    get, path = "/readyz", tag = "service", operation_id = "readyz",
    responses(
        (status = 200, description = "Every condition holds.", body = Readiness,
            example = json!({"ready": true, "conditions": {"database": null, "migrations": null}})),
        (status = 503, description = "A condition does not hold.", body = Readiness,
            example = json!({"ready": false,
                "conditions": {"database": "the database is not available", "migrations": null}})),
    )
)]
#[expect(dead_code, reason = "describes a handler of another crate")]
fn readyz() {}

/// The OpenAPI document as a page for people, wherever `/docs` leads.
#[utoipa::path(
    get, path = "/openapi.html", tag = "service", operation_id = "openapiPage",
    responses((status = 200, description = "A page without outside resources, readable without scripts.",
        body = String, content_type = "text/html"))
)]
#[expect(dead_code, reason = "describes a handler of another crate")]
fn openapi_page() {}

/// The documentation for resellers; where none was built, the same page as `/openapi.html`.
#[utoipa::path(
    get, path = "/docs", tag = "service", operation_id = "docs",
    responses(
        (status = 200, description = "A page without outside resources, readable without scripts.",
            body = String, content_type = "text/html"),
        (status = 307, description = "The documentation begins at /docs/."),
    )
)]
#[expect(dead_code, reason = "describes handlers of which only one is there")]
fn docs() {}

/// What an operation that needs a key can answer.
fn problems_of(operation: &Operation) -> Vec<Problem> {
    let unknown =
        "is \"domain.creatd\", but the catalogue has no such event type; GET /event-types lists what it has";
    let mut problems = usual_problems(
        operation,
        "the subscription cannot be read now",
        "The body is longer than portal.maxBodyBytes.",
        FieldProblem::new("eventTypes[1]", unknown).coded(FieldCode::UnknownValue),
    );
    let name = operation.operation_id.as_deref().unwrap_or_default();
    problems.extend(conflicts_of(name).iter().map(|kind| typical(*kind)));
    problems.push(typical(TOO_MANY_REQUESTS));
    problems
}

fn conflicts_of(operation: &str) -> &'static [ProblemKind] {
    match operation {
        "createSubscription" => &[TOO_MANY_SUBSCRIPTIONS],
        "activateSubscription"
        | "deactivateSubscription"
        | "verifySubscription"
        | "testSubscription"
        | "retrySubscriptionNow" => &[SUBSCRIPTION_STATE],
        "confirmEmail" => &[CODE_VOID],
        "rotateSecret" => &[TOO_MANY_SECRETS],
        "revokeSecret" => &[LAST_SECRET],
        "requestQuota" => &[QUOTA_REQUEST_OPEN],
        "withdrawQuotaRequest" => &[QUOTA_REQUEST_DECIDED],
        "resendNotification" => &[
            NOTIFICATION_UNFINISHED,
            NOTIFICATION_CANCELLED,
            SUBSCRIPTION_STATE,
        ],
        "resendNotifications" => &[TOO_MANY_MATCH, SUBSCRIPTION_STATE],
        "changeSubscription" => &[CHANGED_MEANWHILE],
        "cancelNotification" => &[NOTIFICATION_BEYOND],
        "createReplay" => &[REPLAY_RUNNING],
        "cancelReplay" => &[REPLAY_COMPLETED],
        _ => &[],
    }
}

//! The OpenAPI document: what the handlers say about themselves, and the problems that each of them can answer with.

use http_api::openapi::{Readiness, complete};
use http_api::{FieldProblem, ProblemBody};
use utoipa::OpenApi;

use crate::problems;
use crate::router::routes;

/// Where keys come from, and what they allow.
const KEYS: &str = "An API key, made with `postrider keys create`. Handing in pushes and events needs the role \
            ingest or admin; looking at them any role but reseller; changing the catalogue of event types the role admin. \
            A revoked key is refused within 5 seconds.";

/// The document, as served at `/openapi.json`.
pub fn document() -> utoipa::openapi::OpenApi {
    complete(routes().into_openapi(), KEYS, |method, path, _| {
        problems::of(method, path)
    })
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Postrider ingest API",
        description = "Takes push notifications and events in and tells what has become of them.\n\n\
            What was answered 2xx is stored durably and survives the crash of any process. Everything but a success is \
            answered with problem details (RFC 9457, application/problem+json); the member `type` tells problems apart \
            and is stable.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers((url = "/", description = "The server that this document comes from.")),
    tags(
        (name = "push", description = "Pushes."),
        (name = "events", description = "Events, which resellers are notified of."),
        (name = "event types", description = "The catalogue of event types."),
        (name = "service", description = "The service itself; no API key is needed."),
    ),
    paths(
        http_api::openapi::healthz, readyz, http_api::openapi::openapi, http_api::openapi::docs,
    ),
    components(schemas(ProblemBody, FieldProblem, Readiness)),
)]
pub(crate) struct Service;

/// Tells whether the process can do its work.
///
/// While only the broker is missing pushes and events are still accepted; they wait in the database.
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

//! The OpenAPI document: what the handlers say about themselves, and the problems that each of them can answer with.

use http_api::openapi::{Readiness, add_api_key, add_problems, declare_public};
use http_api::{FieldProblem, ProblemBody};
use utoipa::{Modify, OpenApi};

use crate::problems;
use crate::router::routes;

/// The document, as served at `/openapi.json`.
pub fn document() -> utoipa::openapi::OpenApi {
    let mut document = routes().into_openapi();
    ApiKeys.modify(&mut document);
    Problems.modify(&mut document);
    declare_public(&mut document);
    document
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

struct ApiKeys;

impl Modify for ApiKeys {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let description = "An API key, made with `postrider keys create`. Handing in pushes and events needs the role \
            ingest or admin; looking at them any role but reseller; changing the catalogue of event types the role admin. \
            A revoked key is refused within 5 seconds.";
        add_api_key(document, description);
    }
}

struct Problems;

impl Modify for Problems {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        for (path, item) in &mut document.paths.paths {
            let operations = [
                ("GET", &mut item.get),
                ("PUT", &mut item.put),
                ("POST", &mut item.post),
                ("DELETE", &mut item.delete),
            ];
            for (method, operation) in operations {
                if let Some(operation) = operation {
                    add_problems(operation, &problems::of(method, path));
                }
            }
        }
    }
}

//! Around a service's own routes: its documents, its probes, and answers for every path and method that it lacks.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use lifecycle::Readiness;

use crate::documents::Documents;
use crate::kind::ProblemKind;
use crate::observe::Observer;
use crate::problem::Problem;
use crate::{response_headers, taken};

/// The routes of a service with what every service has: `/openapi.json`, `/docs`, `/healthz`, `/readyz`, problems for
/// paths and methods that do not exist, headers that keep browsers from guessing and keeping, and `observer` around all
/// of them.
pub fn complete(routes: Router, documents: Documents, readiness: Readiness, observer: Observer) -> Router {
    let operations = Arc::clone(&documents.operations);
    let routes = routes
        .layer(from_fn_with_state(operations, taken::find))
        .merge(documents.router())
        .merge(telemetry::admin::probes(readiness))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed);
    observer.around(response_headers::around(routes))
}

async fn not_found() -> Problem {
    Problem::new(
        ProblemKind::NOT_FOUND,
        "the path does not exist; /docs shows those that do",
    )
}

/// What is answered where a path exists, but not for the method that was asked.
pub async fn method_not_allowed() -> Problem {
    Problem::new(
        ProblemKind::METHOD_NOT_ALLOWED,
        "the path exists, but not for this method",
    )
}

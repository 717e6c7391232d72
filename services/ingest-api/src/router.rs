//! Which path leads where.

use std::sync::Arc;

use axum::Router;
use http::StatusCode;
use http_api::{Documents, Observer};
use lifecycle::Readiness;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::metrics::Metrics;
use crate::openapi::Service;
use crate::{event, push};

/// The router of the service.
pub(crate) fn router(
    app: Arc<App>,
    documents: Documents,
    readiness: Readiness,
    metrics: Arc<Metrics>,
) -> Router {
    let observer = Observer::new(app.traced).counting(move |route, status, elapsed| {
        status == StatusCode::ACCEPTED && metrics.answered(route, elapsed)
    });
    let (routes, _) = routes().split_for_parts();
    http_api::complete(routes.with_state(app), documents, readiness, observer)
}

/// The routes, and what they say about themselves.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Service::openapi())
        .routes(routes!(push::submit::submit))
        .routes(routes!(push::lookup::find))
        .routes(routes!(event::submit::submit, event::lookup::find_by_own_id))
        .routes(routes!(event::batch::submit_batch))
        .routes(routes!(event::lookup::find))
        .routes(routes!(event::types::list))
        .routes(routes!(
            event::types::find,
            event::types::put,
            event::types::retire
        ))
}

//! Which path leads where.

use std::sync::Arc;

use axum::Router;
use http_api::{Documents, Observer};
use lifecycle::Readiness;

use crate::app::App;
use crate::{
    audit, cancel, dead_letter_jobs, dead_letters, explain, pauses, quota_requests, resolve, restore, status,
};

/// The routes of the service. Each resource has its own in its own module.
pub(crate) fn router(app: Arc<App>, documents: Documents, readiness: Readiness) -> Router {
    let observer = Observer::new(app.config.telemetry.otlp_endpoint.is_some());
    let routes = Router::new()
        .merge(audit::routes())
        .merge(cancel::routes())
        .merge(dead_letters::routes())
        .merge(dead_letter_jobs::routes())
        .merge(pauses::routes())
        .merge(quota_requests::routes())
        .merge(resolve::routes())
        .merge(restore::routes())
        .merge(status::routes())
        .merge(explain::routes())
        .with_state(app);
    http_api::complete(routes, documents, readiness, observer)
}

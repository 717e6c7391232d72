//! Which path leads where.

use std::sync::Arc;

use axum::Router;
use http_api::{Documents, Observer};
use lifecycle::Readiness;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::openapi::Service;
use crate::{
    answers, audit, cancel, cancellations, console, dead_letter_jobs, dead_letters, event_types, events,
    explain, history, keys, mails, notifications, pauses, portal_links, pushes, quota_requests, resolve,
    restore, retry_now, search, status, subscriptions, user_agents, visits, waiting,
};

/// The router of the service.
pub(crate) fn router(app: Arc<App>, documents: Documents, readiness: Readiness) -> Router {
    let observer = Observer::new(app.config.telemetry.otlp_endpoint.is_some());
    let (routes, _) = routes().split_for_parts();
    let mut routes = routes.with_state(Arc::clone(&app));
    if app.config.operator.console {
        routes = routes.merge(console::router(app));
    }
    http_api::complete(routes, documents, readiness, observer)
}

/// The routes, and what they say about themselves. Each resource has its own in its own module.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Service::openapi())
        .merge(answers::routes())
        .merge(audit::routes())
        .merge(cancel::routes())
        .merge(cancellations::routes())
        .merge(dead_letters::routes())
        .merge(dead_letter_jobs::routes())
        .merge(event_types::routes())
        .merge(events::routes())
        .merge(history::routes())
        .merge(keys::routes())
        .merge(mails::routes())
        .merge(notifications::routes())
        .merge(pauses::routes())
        .merge(portal_links::routes())
        .merge(pushes::routes())
        .merge(quota_requests::routes())
        .merge(resolve::routes())
        .merge(restore::routes())
        .merge(retry_now::routes())
        .merge(search::routes())
        .merge(status::routes())
        .merge(subscriptions::routes())
        .merge(user_agents::routes())
        .merge(visits::routes())
        .merge(waiting::routes())
        .merge(explain::routes())
}

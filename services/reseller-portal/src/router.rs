//! Which path leads where.

use std::sync::Arc;

use axum::Router;
use http_api::{Documents, Observer};
use lifecycle::Readiness;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::openapi::Service;
use crate::{
    activity, bounds, cancellations, changes, dashboard, endpoint_checks, event_types, events, links,
    metrics, notifications, overview, quotas, replays, resends, retry_now, secrets, sending_ips,
    signature_checks, site, subscriptions,
};

/// The router of the service.
pub(crate) fn router(app: Arc<App>, documents: Documents, readiness: Readiness) -> Router {
    let documents = match &app.config.portal.docs_directory {
        Some(folder) => documents.with_guide(site::router(folder.clone())),
        None => documents,
    };
    let observer = Observer::new(app.config.telemetry.otlp_endpoint.is_some()).of_strangers();
    let (routes, _) = routes().split_for_parts();
    let mut routes = routes.with_state(Arc::clone(&app));
    if app.config.portal.app {
        routes = routes.merge(dashboard::router(app));
    }
    http_api::complete(routes, documents, readiness, observer)
}

/// The routes, and what they say about themselves.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Service::openapi())
        .routes(routes!(subscriptions::list, subscriptions::create))
        .routes(routes!(
            subscriptions::find,
            subscriptions::change,
            subscriptions::delete
        ))
        .routes(routes!(subscriptions::activate))
        .routes(routes!(subscriptions::deactivate))
        .routes(routes!(subscriptions::pause))
        .routes(routes!(subscriptions::resume))
        .routes(routes!(subscriptions::verify))
        .routes(routes!(subscriptions::send_test))
        .routes(routes!(subscriptions::confirm_email))
        .routes(routes!(subscriptions::resend_code))
        .routes(routes!(secrets::list, secrets::rotate))
        .routes(routes!(secrets::view, secrets::revoke))
        .routes(routes!(signature_checks::check))
        .routes(routes!(endpoint_checks::check))
        .routes(routes!(quotas::show))
        .routes(routes!(quotas::list, quotas::request))
        .routes(routes!(quotas::withdraw))
        .routes(routes!(overview::overview))
        .routes(routes!(notifications::list))
        .routes(routes!(notifications::list_all))
        .routes(routes!(notifications::failures))
        .routes(routes!(notifications::scheduled))
        .routes(routes!(notifications::scheduled_summary))
        .routes(routes!(notifications::find))
        .routes(routes!(notifications::story))
        .routes(routes!(notifications::resend))
        .routes(routes!(notifications::cancel))
        .routes(routes!(cancellations::cancel))
        .routes(routes!(replays::list, replays::create))
        .routes(routes!(replays::find, replays::cancel))
        .routes(routes!(resends::resend))
        .routes(routes!(retry_now::retry_now))
        .routes(routes!(quotas::days))
        .routes(routes!(activity::list))
        .routes(routes!(activity::states))
        .routes(routes!(activity::mails))
        .routes(routes!(bounds::show))
        .routes(routes!(changes::list))
        .routes(routes!(metrics::show))
        .routes(routes!(event_types::list))
        .routes(routes!(event_types::find))
        .routes(routes!(events::find))
        .routes(routes!(sending_ips::list))
        .routes(routes!(links::create))
        .routes(routes!(links::visits, links::end_all))
        .routes(routes!(links::end))
}

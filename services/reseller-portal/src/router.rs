//! Which path leads where.

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use http_api::{Documents, Observer};
use lifecycle::Readiness;

use crate::app::App;
use crate::{
    event_types, metrics, notifications, quotas, replays, secrets, sending_ips, site, subscriptions,
};

/// The routes of the service.
pub(crate) fn router(app: Arc<App>, documents: Documents, readiness: Readiness) -> Router {
    let documents = match &app.config.portal.docs_directory {
        Some(folder) => documents.with_guide(site::router(folder.clone())),
        None => documents,
    };
    let observer = Observer::new(app.config.telemetry.otlp_endpoint.is_some()).of_strangers();
    let routes = Router::new()
        .merge(of_subscriptions())
        .route(
            "/subscriptions/{id}/secrets",
            get(secrets::list).post(secrets::rotate),
        )
        .route(
            "/subscriptions/{id}/secrets/{secret}",
            get(secrets::view).delete(secrets::revoke),
        )
        .route("/subscriptions/{id}/quota", get(quotas::show))
        .route(
            "/subscriptions/{id}/quota-requests",
            get(quotas::list).post(quotas::request),
        )
        .route("/subscriptions/{id}/notifications", get(notifications::list))
        .route("/subscriptions/{id}/scheduled", get(notifications::scheduled))
        .route("/notifications/{id}", get(notifications::find))
        .route("/notifications/{id}/resend", post(notifications::resend))
        .route(
            "/subscriptions/{id}/replays",
            get(replays::list).post(replays::create),
        )
        .route(
            "/subscriptions/{id}/replays/{replay}",
            get(replays::find).delete(replays::cancel),
        )
        .route("/subscriptions/{id}/metrics", get(metrics::show))
        .route("/event-types", get(event_types::list))
        .route("/event-types/{name}", get(event_types::find))
        .route("/.well-known/postrider-ips.json", get(sending_ips::list))
        .with_state(app);
    http_api::complete(routes, documents, readiness, observer)
}

fn of_subscriptions() -> Router<Arc<App>> {
    let one = get(subscriptions::find)
        .patch(subscriptions::change)
        .delete(subscriptions::delete);
    Router::new()
        .route(
            "/subscriptions",
            get(subscriptions::list).post(subscriptions::create),
        )
        .route("/subscriptions/{id}", one)
        .route("/subscriptions/{id}/activate", post(subscriptions::activate))
        .route("/subscriptions/{id}/deactivate", post(subscriptions::deactivate))
        .route("/subscriptions/{id}/pause", post(subscriptions::pause))
        .route("/subscriptions/{id}/resume", post(subscriptions::resume))
        .route("/subscriptions/{id}/verify", post(subscriptions::verify))
        .route("/subscriptions/{id}/test", post(subscriptions::send_test))
        .route(
            "/subscriptions/{id}/email/confirm",
            post(subscriptions::confirm_email),
        )
        .route(
            "/subscriptions/{id}/email/resend",
            post(subscriptions::resend_code),
        )
}

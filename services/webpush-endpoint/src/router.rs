//! Which path leads where. The paths and answers are those of a contract of others, so that there is no OpenAPI document of them.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{delete, get, post};
use http_api::Observer;
use webpush::Refusal;

use crate::answer::Refused;
use crate::app::App;
use crate::{cors, health, messages, registrations, send};

/// Where senders send to endpoints without a key.
pub(crate) const TO_FIRST_VERSION: &str = "/wpush/{token}";
/// The same, of a version that is named.
pub(crate) const TO_VERSION: &str = "/wpush/{version}/{token}";

/// The router of the service.
pub(crate) fn router(app: Arc<App>, observer: Observer) -> Router {
    let metrics = Arc::clone(&app.metrics);
    let observer = observer.counting(move |route, status, _| metrics.answered(route, status));
    let registration = "/v1/{type}/{app_id}/registration";
    let routes = Router::new()
        .route(TO_FIRST_VERSION, post(send::to_first_version))
        .route(TO_VERSION, post(send::to_version))
        .route("/m/{message_id}", delete(messages::delete))
        .route(registration, post(registrations::register))
        .route(
            &format!("{registration}/{{uaid}}"),
            get(registrations::show)
                .put(registrations::update)
                .delete(registrations::delete),
        )
        .route(
            &format!("{registration}/{{uaid}}/subscription"),
            post(registrations::subscribe),
        )
        .route(
            &format!("{registration}/{{uaid}}/subscription/{{channel}}"),
            delete(registrations::unsubscribe),
        )
        .route("/health", get(health::health))
        .route("/__heartbeat__", get(health::health))
        .route("/__lbheartbeat__", get(health::alive))
        .route("/status", get(health::status))
        .route("/__version__", get(health::version))
        .route("/v1/err", get(health::error))
        .route("/v1/err/crit", get(health::error))
        .route("/__error__", get(health::error))
        .fallback(async || Refused::from(Refusal::NotFound))
        .method_not_allowed_fallback(async || Refused::from(Refusal::MethodNotAllowed))
        .with_state(app)
        .layer(from_fn(cors::allow));
    observer.around(routes)
}

//! Which path leads where.

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use http::StatusCode;
use http_api::{Documents, Observer};
use lifecycle::Readiness;

use crate::app::App;
use crate::{event, push};

/// The metrics of both lanes.
pub(crate) struct Meters {
    pub(crate) push: Arc<push::meters::Meters>,
    pub(crate) event: Arc<event::meters::Meters>,
}

/// The routes of the service.
pub(crate) fn router(app: Arc<App>, documents: Documents, readiness: Readiness, meters: Meters) -> Router {
    let observer = Observer::new(app.traced).counting(move |route, status, elapsed| {
        status == StatusCode::ACCEPTED
            && (meters.push.answered(route, elapsed) || meters.event.answered(route, elapsed))
    });
    let types = get(event::types::find)
        .put(event::types::put)
        .delete(event::types::retire);
    let routes = Router::new()
        .route("/push", post(push::submit::submit))
        .route("/push/{id}", get(push::lookup::find))
        .route("/events", post(event::submit::submit))
        .route("/events/batch", post(event::batch::submit_batch))
        .route("/events/{id}", get(event::lookup::find))
        .route("/event-types", get(event::types::list))
        .route("/event-types/{name}", types)
        .with_state(app);
    http_api::complete(routes, documents, readiness, observer)
}

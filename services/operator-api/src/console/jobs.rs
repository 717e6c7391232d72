//! Pages under `/console/jobs`: bulk work on dead letters, from counting what it would be about to what became of it.

mod draft;
mod endpoint_pace;
mod ids;
mod new;
mod shown;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use crate::app::App;

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/console/jobs", get(shown::list).post(new::start))
        .route("/console/jobs/new", get(new::page).post(ids::count))
        .route("/console/jobs/export", get(shown::export))
        .route("/console/jobs/{id}", get(shown::page))
        .merge(shown::routes())
}

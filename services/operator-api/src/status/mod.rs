//! `GET /status`: how the system is, with what is wrong first.

mod document;
mod evaluate;
mod facts;
mod finding;
mod shared;
mod thresholds;
mod watch;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::request::Viewer;

pub(crate) use document::{
    LaneDocument, LeaderDocument, MailsDocument, PauseDocument, QueueDocument, StatusDocument,
    TroubleDocument, WebpushDocument,
};
pub(crate) use finding::{Finding, Severity};
pub(crate) use shared::{Shared, following};
pub(crate) use watch::watch;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(status))
}

/// Tells how the system is.
///
/// What is wrong comes first, in words, with the command that helps. The answer is 200 whatever is wrong; while the database
/// or the broker is away it holds what is known without it. Only the API key has to be known: one that was used within the
/// last seconds still is when the database is away, any other is answered with 503.
#[utoipa::path(
    get, path = "/status", tag = "status", operation_id = "status", security(("apiKey" = [])),
    responses((status = 200, description = "How the system is.", body = StatusDocument))
)]
pub(crate) async fn status(State(app): State<Arc<App>>, _viewer: Viewer) -> Json<StatusDocument> {
    let facts = app.status.facts(&app).await;
    let findings = evaluate::evaluate(&facts);
    if !evaluate::is_healthy(&findings) {
        watch::note_otherwise(&app, &facts).await;
    }
    Json(StatusDocument::of(&facts, findings))
}

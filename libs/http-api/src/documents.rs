//! What a service says about itself: its OpenAPI document, for programs and as a page for people.
//!
//! The page is at `/docs`, unless the service has more to show there: then it is at `/openapi.html` alone.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use bytes::Bytes;
use http::{HeaderName, header};
use utoipa::openapi::OpenApi;

use crate::docs_page;
use crate::taken::Operations;

/// A service's OpenAPI document, rendered once.
pub struct Documents {
    json: Bytes,
    page: Bytes,
    guide: Option<Router>,
    pub(crate) operations: Arc<Operations>,
}

impl Documents {
    /// Renders `document`.
    pub fn new(document: &OpenApi) -> Self {
        let document = serde_json::to_value(document)
            .expect("invariant: an OpenAPI document is made of texts, numbers and maps by text");
        Self {
            json: document.to_string().into(),
            page: docs_page::render(&document).into(),
            guide: None,
            operations: Arc::new(Operations::of(&document)),
        }
    }

    /// Gives `/docs`, and everything below it, to `guide`: routes that say more than the page does.
    pub fn with_guide(self, guide: Router) -> Self {
        Self {
            guide: Some(guide),
            ..self
        }
    }

    /// `/openapi.json`, `/openapi.html` and `/docs`.
    pub(crate) fn router(mut self) -> Router {
        let guide = self.guide.take();
        let documents = Router::new()
            .route("/openapi.json", get(openapi))
            .route("/openapi.html", get(docs));
        match guide {
            Some(guide) => documents.with_state(Arc::new(self)).merge(guide),
            None => documents.route("/docs", get(docs)).with_state(Arc::new(self)),
        }
    }
}

/// The OpenAPI document of this service.
#[utoipa::path(
    get, path = "/openapi.json", tag = "service", operation_id = "openapi",
    responses((status = 200, description = "This document.", body = serde_json::Value))
)]
pub(crate) async fn openapi(
    State(documents): State<Arc<Documents>>,
) -> ([(HeaderName, &'static str); 1], Bytes) {
    (
        [(header::CONTENT_TYPE, "application/json")],
        documents.json.clone(),
    )
}

/// The same as a page for people.
#[utoipa::path(
    get, path = "/docs", tag = "service", operation_id = "docs",
    responses((status = 200, description = "A page without outside resources, readable without scripts.",
        body = String, content_type = "text/html"))
)]
pub(crate) async fn docs(
    State(documents): State<Arc<Documents>>,
) -> ([(HeaderName, &'static str); 2], Bytes) {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            header::CONTENT_SECURITY_POLICY,
            docs_page::CONTENT_SECURITY_POLICY,
        ),
    ];
    (headers, documents.page.clone())
}

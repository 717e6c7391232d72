//! `/console/gallery`: every component of the pages in every state, for those who make pages. What ships does not have it.

use askama::Template;
use axum::response::IntoResponse;

use super::frame::{Frame, Page};
use crate::request::Viewer;

#[derive(Template)]
#[template(path = "gallery.html")]
struct Gallery {
    frame: Frame,
}

pub(super) async fn page(_: Viewer, frame: Frame) -> impl IntoResponse {
    Page(Gallery { frame })
}

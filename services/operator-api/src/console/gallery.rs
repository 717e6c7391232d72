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

#[cfg(test)]
mod tests {
    /// Its pictures are made of the template alone.
    #[test]
    fn a_folded_body_stands_there_as_pages_make_it() {
        let body = r#"{"id": "evt_1", "type": "domain.created", "data": {"domain": "example.org",
            "names": ["ns1.example.org", "ns2.example.org"], "note": "<script>alert(1)</script>"}}"#;
        let made = pages::folded(body, "g-body", "Body").0;
        let shown = made.replace("id=\"g-body-2\" open", "id=\"g-body-2\"");
        let gallery = include_str!("../../templates/gallery.html");
        assert!(gallery.contains(&shown), "{shown}");
    }
}

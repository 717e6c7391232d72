//! `/console/preferences`: what a viewer prefers, as a form that needs no script. Keeping it is in the module of visits.

use askama::Template;
use axum::response::IntoResponse;

use super::frame::{Frame, Page};
use crate::request::Viewer;

#[derive(Template)]
#[template(path = "preferences.html")]
struct PreferencesPage {
    frame: Frame,
}

impl PreferencesPage {
    fn themes(&self) -> [(&'static str, &'static str); 3] {
        [("system", "As the system"), ("light", "Light"), ("dark", "Dark")]
    }

    fn has(&self, kept: &str, value: impl AsRef<str>) -> bool {
        kept == value.as_ref() || kept.is_empty() && value.as_ref() == "system"
    }

    fn densities(&self) -> [(&'static str, &'static str); 2] {
        [("dense", "Dense"), ("comfortable", "Comfortable")]
    }

    /// What can be on or off: its name, what it is called, what it does, and whether it is on.
    fn switches(&self) -> [(&'static str, &'static str, &'static str, bool); 2] {
        let preferences = &self.frame.preferences;
        [
            (
                "live",
                "Live",
                "Pages follow what happens, where scripts run.",
                preferences.live,
            ),
            (
                "keys",
                "Single keys",
                "Keys such as j, k and ? do something, where scripts run.",
                preferences.keys,
            ),
        ]
    }
}

/// The form.
pub(super) async fn page(_: Viewer, frame: Frame) -> impl IntoResponse {
    Page(PreferencesPage { frame })
}

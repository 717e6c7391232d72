//! `/console/preferences`: what a viewer prefers, as a form that needs no script.

use askama::Template;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use pages::{Fields, Preferences, PreferencesForm};

use super::HOME;
use super::frame::{Frame, Page};
use super::visit::onward;
use crate::request::Viewer;

#[derive(Template)]
#[template(path = "preferences.html")]
struct PreferencesPage {
    frame: Frame,
    form: PreferencesForm,
}

/// The form.
pub(super) async fn page(_: Viewer, frame: Frame) -> impl IntoResponse {
    let form = PreferencesForm::new(frame.preferences.clone(), HOME);
    Page(PreferencesPage { frame, form })
}

/// Keeps what it says, in a cookie.
pub(super) async fn prefer(headers: HeaderMap, fields: Fields) -> Response {
    pages::prefer(Preferences::of(&headers), &fields, &onward(fields.get("back")))
}

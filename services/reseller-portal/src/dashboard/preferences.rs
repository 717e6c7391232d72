//! What a viewer prefers, as a form that needs no script.

use askama::Template;
use axum::response::{IntoResponse, Response};
use pages::{Fields, Page, PreferencesForm};

use super::frame::Frame;
use super::{HOME, Route};

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page("/app/preferences", page),
        super::act("/app/preferences", prefer),
    ]
}

#[derive(Template)]
#[template(path = "preferences.html")]
struct PreferencesPage {
    frame: Frame,
    form: PreferencesForm,
}

async fn page(frame: Frame) -> impl IntoResponse {
    let form = PreferencesForm::new(frame.preferences.clone(), HOME);
    Page(PreferencesPage { frame, form })
}

/// Keeps what it says, in a cookie.
async fn prefer(frame: Frame, fields: Fields) -> Response {
    let back = fields.get("back").filter(|back| super::is_ours(back));
    pages::prefer(frame.preferences.clone(), &fields, back.unwrap_or(HOME))
}

//! `/console/access`: what the viewer may do, what each role may, and how keys are made and revoked.
//!
//! It deliberately makes no keys: there is no operation for that, and the command line does it on the database.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;

use super::frame::{Frame, Page};
use crate::app::App;
use crate::request::Viewer;

/// What each role may do here.
const ROLES: [(&str, &str); 3] = [
    (
        "viewer",
        "Look at everything: status, dead letters, jobs, subscriptions, the audit log.",
    ),
    (
        "operator",
        "The same, and mend it: replay, discard, pause, resume, cancel, rescue, rebuild.",
    ),
    (
        "admin",
        "Everything of the house: the same, and decide quota requests.",
    ),
];

/// What is done with the command line.
const COMMANDS: [(&str, &str); 4] = [
    (
        "Make a key for a colleague",
        "postrider keys create --name ada --role operator",
    ),
    (
        "Make a key for a reseller",
        "postrider keys create --name acme --role reseller --reseller acme",
    ),
    ("List all keys", "postrider keys list"),
    ("Revoke a key, and end its visits", "postrider keys revoke ID"),
];

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route("/console/access", get(page))
}

#[derive(Template)]
#[template(path = "access.html")]
struct Access {
    frame: Frame,
}

impl Access {
    fn roles(&self) -> &'static [(&'static str, &'static str)] {
        &ROLES
    }

    fn commands(&self) -> &'static [(&'static str, &'static str)] {
        &COMMANDS
    }
}

async fn page(_: Viewer, frame: Frame) -> impl IntoResponse {
    Page(Access { frame })
}

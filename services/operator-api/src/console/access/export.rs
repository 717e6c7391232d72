//! Who has access, as files: keys, visits, and links to the dashboards of resellers. None has what opens anything: that is not stored.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http_api::Problem;

use super::HERE;
use crate::app::App;
use crate::console::export::{self, Column};
use crate::console::frame::Frame;
use crate::request::Viewer;
use crate::{keys, portal_links, visits};

const KEYS: [Column; 13] = [
    ("id", "/id"),
    ("name", "/name"),
    ("roles", "/roles"),
    ("resellerId", "/resellerId"),
    ("createdAt", "/createdAt"),
    ("createdBy", "/createdBy"),
    ("revokedAt", "/revokedAt"),
    ("revokedBy", "/revokedBy"),
    ("expiresAt", "/expiresAt"),
    ("usedAt", "/usedAt"),
    ("scope", "/scope"),
    ("perSecond", "/perSecond"),
    ("successorOf", "/successorOf"),
];
const VISITS: [Column; 9] = [
    ("id", "/id"),
    ("name", "/name"),
    ("roles", "/roles"),
    ("key", "/key"),
    ("issuer", "/issuer"),
    ("breaksGlass", "/breaksGlass"),
    ("beganAt", "/beganAt"),
    ("lastSeenAt", "/lastSeenAt"),
    ("endsAt", "/endsAt"),
];
const PORTAL_VISITS: [Column; 10] = [
    ("id", "/id"),
    ("resellerId", "/resellerId"),
    ("personId", "/person/id"),
    ("personName", "/person/name"),
    ("capabilities", "/capabilities"),
    ("operator", "/operator"),
    ("keyId", "/keyId"),
    ("beganAt", "/beganAt"),
    ("lastSeenAt", "/lastSeenAt"),
    ("endsAt", "/endsAt"),
];
const PORTAL_LINKS: [Column; 10] = [
    ("id", "/id"),
    ("resellerId", "/resellerId"),
    ("personId", "/person/id"),
    ("personName", "/person/name"),
    ("capabilities", "/capabilities"),
    ("operator", "/operator"),
    ("keyId", "/keyId"),
    ("createdAt", "/createdAt"),
    ("expiresAt", "/expiresAt"),
    ("usedAt", "/usedAt"),
];

/// A list of the page as a file: what it is called, and where it is as CSV and as JSON.
pub(super) struct Written {
    pub(super) name: &'static str,
    pub(super) csv: String,
    pub(super) json: String,
}

/// The lists of the page: keys as they are filtered on it, and the others, which have no filter there.
pub(super) fn files(frame: &Frame) -> [Written; 4] {
    let keys = |format| export::link(frame, &format!("{HERE}/keys/export"), format);
    let others = |list: &str, format: &str| format!("{HERE}/{list}/export?format={format}");
    let other = |name, list| Written {
        name,
        csv: others(list, "csv"),
        json: others(list, "json"),
    };
    [
        Written {
            name: "Keys",
            csv: keys("csv"),
            json: keys("json"),
        },
        other("Visits", "visits"),
        other("Visits to dashboards", "portal-visits"),
        other("Links to dashboards", "portal-links"),
    ]
}

pub(super) async fn of_keys(
    State(app): State<Arc<App>>,
    _: Viewer,
    frame: Frame,
) -> Result<Response, Problem> {
    export::list(app, &frame, ("keys", &KEYS), keys::list).await
}

pub(super) async fn of_visits(
    State(app): State<Arc<App>>,
    _: Viewer,
    frame: Frame,
) -> Result<Response, Problem> {
    export::list(app, &frame, ("visits", &VISITS), visits::list).await
}

pub(super) async fn of_portal_visits(
    State(app): State<Arc<App>>,
    _: Viewer,
    frame: Frame,
) -> Result<Response, Problem> {
    export::list(
        app,
        &frame,
        ("portal-visits", &PORTAL_VISITS),
        portal_links::visits,
    )
    .await
}

pub(super) async fn of_portal_links(
    State(app): State<Arc<App>>,
    _: Viewer,
    frame: Frame,
) -> Result<Response, Problem> {
    export::list(app, &frame, ("portal-links", &PORTAL_LINKS), portal_links::list).await
}

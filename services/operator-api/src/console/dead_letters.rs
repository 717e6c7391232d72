//! Pages under `/console/dead-letters`: dead letters in groups, in a list, and one by one. What is done about many of them at once is in the
//! module of jobs.

mod cause;
mod chosen;
mod groups;
mod list;
mod noted;
mod one;
mod resellers;
mod written;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use cause::KINDS;
pub(super) use cause::cause;
pub(super) use chosen::{AGES, Chosen, moment};
pub(super) use one::replay_form;

use crate::app::App;

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/console/dead-letters", get(groups::page))
        .route("/console/dead-letters/groups/export", get(groups::export))
        .route("/console/dead-letters/resellers", get(resellers::page))
        .route("/console/dead-letters/list", get(list::page))
        .route("/console/dead-letters/export", get(list::export))
        .route("/console/dead-letters/note", get(noted::ask).post(noted::put))
        .route("/console/dead-letters/{id}", get(one::page))
        .route(
            "/console/dead-letters/{id}/replay",
            get(one::ask_to_replay).post(one::replay),
        )
        .route(
            "/console/dead-letters/{id}/discard",
            get(one::ask_to_discard).post(one::discard),
        )
}

/// The fields of the form of filters.
const FIELDS: [&str; 12] = [
    "state",
    "lane",
    "reason",
    "since",
    "until",
    "fingerprint",
    "target",
    "reseller",
    "subscription",
    "eventType",
    "prototype",
    "job",
];

/// The views of what a filter chooses: address, name, and whether it is this one.
fn tabs(chosen: &Chosen, here: &str) -> [(String, &'static str, bool); 4] {
    [
        (
            chosen.link("/console/dead-letters", &[]),
            "By cause",
            here == "cause",
        ),
        (
            chosen.link("/console/dead-letters", &[("by", "endpoint")]),
            "By endpoint",
            here == "endpoint",
        ),
        (
            chosen.link("/console/dead-letters/resellers", &[]),
            "By reseller",
            here == "reseller",
        ),
        (
            chosen.link("/console/dead-letters/list", &[]),
            "All, newest first",
            here == "list",
        ),
    ]
}

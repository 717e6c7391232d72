//! The on-call console: pages for people, under `/console`.
//!
//! A page shows what an operation of the API answers, and a form does what one does: pages call the very handlers, so that what is allowed,
//! checked and recorded is the same. It deliberately has no state of its own but visits; what a page shows is in its address.

mod access;
mod act;
mod audit;
mod dead_letters;
mod export;
mod frame;
#[cfg(debug_assertions)]
mod gallery;
mod guard;
mod jobs;
mod lanes;
mod mails;
mod now;
mod pauses;
mod preferences;
mod provider;
mod quota_requests;
mod resellers;
mod retries;
mod search;
mod system;
mod times;
mod trace;
mod visit;
mod waiting;
mod webpush;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{get, post};
use http::HeaderMap;
use http_api::{Problem, ProblemKind, method_not_allowed};
use pages::{Assets, markup, moved};

use crate::app::App;

#[cfg(test)]
pub(crate) use now::place;
pub(crate) use provider::{SignInLimit, is_stale, of as provider_of};
pub(crate) use visit::Visits;

/// Where the console begins.
const HOME: &str = "/console";

/// What the pages load.
static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets::new("/console/assets", &[]));

/// The pages, and what stands around them.
pub(crate) fn router(app: Arc<App>) -> Router {
    let pages = Router::new();
    #[cfg(debug_assertions)]
    let pages = pages.route("/console/gallery", get(gallery::page));
    let pages = pages
        .route(HOME, get(now::page))
        .merge(dead_letters::routes())
        .merge(jobs::routes())
        .merge(waiting::routes())
        .merge(lanes::routes())
        .merge(retries::routes())
        .merge(webpush::routes())
        .merge(search::routes())
        .merge(resellers::routes())
        .merge(quota_requests::routes())
        .merge(system::routes())
        .merge(mails::routes())
        .merge(pauses::routes())
        .merge(audit::routes())
        .merge(access::routes())
        .route("/console/preferences", get(preferences::page))
        .route("/console/{*path}", get(missing))
        .layer(from_fn_with_state(Arc::clone(&app), guard::visited));
    let open = Router::new()
        .route("/console/", get(with_slash))
        .route("/console/sign-in", get(visit::page).post(visit::sign_in))
        .route("/console/sign-in/start", get(provider::start))
        .route("/console/sign-in/return", get(provider::answered))
        .route(guard::VIOLATIONS, post(guard::take_violations))
        .route("/console/sign-out", post(visit::sign_out))
        .route("/console/preferences", post(preferences::prefer))
        .route("/console/assets/{version}/{name}", get(asset));
    pages
        .merge(open)
        // Before the layer, so that this too becomes a page: going back to the address of a form asks for it with GET.
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(&app), guard::protect))
        .with_state(app)
}

async fn with_slash(RawQuery(query): RawQuery) -> Response {
    moved(HOME, query.as_deref())
}

async fn asset(
    Path((version, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    ASSETS.serve(&version, &name, &headers)
}

async fn missing() -> Problem {
    Problem::new(ProblemKind::NOT_FOUND, "the console has no page at this address")
}

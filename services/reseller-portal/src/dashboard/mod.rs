//! The dashboard of a reseller: pages for people, under `/app`.
//!
//! A page shows what an operation of the API answers, and a form does what one does: pages call the very handlers, so that what is allowed,
//! checked and recorded is the same. It deliberately has no state of its own but visits; what a page shows is in its address.

mod activity;
mod cancel_many;
mod confirm;
mod deliveries;
mod delivery_filter;
mod enter;
mod event;
mod event_types;
mod export;
mod frame;
mod guard;
mod live;
mod metrics;
mod new;
mod notification;
mod overview;
mod preferences;
mod quota;
mod replays;
mod resend_all;
mod resend_selected;
mod retry_now;
mod scheduled;
mod secrets;
mod settings;
mod signature;
mod subscription_form;
mod verify;
mod visit;
mod words;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use domain::subscription::SubscriptionState;
use http::HeaderMap;
use http_api::{Id, Problem, ProblemKind, ReadParams, method_not_allowed};
use pages::{Asset, Assets, moved};
use uuid::Uuid;

use crate::app::App;
use crate::request::{PartParams, Reseller};
use crate::subscriptions::{self, SubscriptionDocument};

pub(crate) use visit::{Visits, new_token};

/// Where the dashboard begins.
pub(crate) const HOME: &str = "/app";

/// What the pages load.
static ASSETS: LazyLock<Assets> = LazyLock::new(|| {
    let visit = Asset {
        name: "visit.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_bytes!("../../assets/visit.js"),
    };
    Assets::new("/app/assets", &[visit])
});

/// A page, or what its form does.
struct Route {
    method: &'static str,
    path: &'static str,
    handler: MethodRouter<Arc<App>>,
}

/// A page.
fn page<T: 'static>(path: &'static str, handler: impl Handler<T, Arc<App>>) -> Route {
    Route {
        method: "GET",
        path,
        handler: get(handler),
    }
}

/// What the form of a page does.
fn act<T: 'static>(path: &'static str, handler: impl Handler<T, Arc<App>>) -> Route {
    Route {
        method: "POST",
        path,
        handler: post(handler),
    }
}

/// Everything that takes a visit. A new page adds its own here.
fn routes() -> Vec<Route> {
    let all = [
        overview::routes(),
        new::routes(),
        verify::routes(),
        settings::routes(),
        deliveries::routes(),
        export::routes(),
        resend_all::routes(),
        resend_selected::routes(),
        notification::routes(),
        scheduled::routes(),
        cancel_many::routes(),
        retry_now::routes(),
        metrics::routes(),
        quota::routes(),
        secrets::routes(),
        replays::routes(),
        live::routes(),
        event_types::routes(),
        signature::routes(),
        activity::routes(),
        preferences::routes(),
    ];
    all.into_iter().flatten().collect()
}

/// Why nothing can be sent to a subscription in this state, if nothing can.
fn takes_nothing(state: SubscriptionState) -> Option<&'static str> {
    match state {
        SubscriptionState::Active | SubscriptionState::Degraded => None,
        SubscriptionState::PendingVerification => Some("its endpoint has not answered a challenge yet"),
        SubscriptionState::Deactivated => Some("its subscription is deactivated"),
    }
}

/// Method and path of everything that takes a visit.
pub(crate) fn paths() -> Vec<(&'static str, &'static str)> {
    routes()
        .into_iter()
        .map(|route| (route.method, route.path))
        .collect()
}

/// The pages, and what stands around them.
pub(crate) fn router(app: Arc<App>) -> Router {
    let pages = routes().into_iter();
    let pages = pages.fold(Router::new(), |router, route| {
        router.route(route.path, route.handler)
    });
    let pages = pages
        .route("/app/{*path}", get(missing))
        .layer(from_fn_with_state(Arc::clone(&app), guard::visited));
    let open = Router::new()
        .route("/app/", get(with_slash))
        .route("/app/enter", get(enter::page).post(enter::enter))
        .route("/app/expired", get(enter::expired))
        .route(guard::VIOLATIONS, post(guard::take_violations))
        .route("/app/sign-out", post(visit::sign_out))
        .route("/app/brand.css", get(frame::brand_style))
        .route("/app/logo", get(frame::logo))
        .route("/app/assets/{version}/{name}", get(asset));
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
    Problem::new(
        ProblemKind::NOT_FOUND,
        "the dashboard has no page at this address",
    )
}

/// The subscription that a page belongs to.
async fn subscription(
    app: &Arc<App>,
    reseller: &Reseller,
    id: Uuid,
) -> Result<SubscriptionDocument, Problem> {
    let found = subscriptions::find(State(Arc::clone(app)), reseller.clone(), Id(id)).await?;
    Ok(found.1.0)
}

/// Most subscriptions of a reseller that pages know of.
const SUBSCRIPTIONS_MAX: u32 = 200;

/// The subscriptions of a reseller, the first ones where there are more.
async fn subscriptions_of(app: &Arc<App>, reseller: &Reseller) -> Result<Vec<SubscriptionDocument>, Problem> {
    let part = ReadParams::of(PartParams {
        limit: Some(SUBSCRIPTIONS_MAX),
        cursor: None,
    });
    let list = subscriptions::list(State(Arc::clone(app)), reseller.clone(), part).await?;
    Ok(list.0.items)
}

/// Whether an address is one of the dashboard: nothing else is led to.
pub(crate) fn is_ours(address: &str) -> bool {
    let rest = address.strip_prefix(HOME);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        && address
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_the_dashboard_alone() {
        for ours in ["/app", "/app/deliveries?status=FAILED", "/app?x=1"] {
            assert!(is_ours(ours), "{ours}");
        }
        for other in [
            "//evil.example",
            "https://evil.example",
            "/apps",
            "/app\\@evil",
            "/app\r\nx",
            "",
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }
}

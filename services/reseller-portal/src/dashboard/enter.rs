//! Opening a one-time link, and what is said to those who have no visit.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::key::KeyDigest;
use http::{HeaderMap, StatusCode};
use http_api::{Problem, by};
use pages::{Fields, Page, see_other};
use store::PortalVisit;

use super::guard::FramedBy;
use super::visit;
use crate::app::App;

#[derive(Template)]
#[template(path = "enter.html")]
struct EnterPage {
    name: String,
}

#[derive(Template)]
#[template(path = "expired.html")]
struct ExpiredPage {
    name: String,
    /// Whether it was a link that opened nothing.
    is_link: bool,
    /// The visit that the browser had last, where it still shows it.
    last: Option<PortalVisit>,
    /// The origins whose pages may frame the dashboard, with blanks between them.
    origins: String,
}

impl ExpiredPage {
    fn new(app: &App, last: Option<PortalVisit>) -> Self {
        Self {
            name: app.config.portal.brand.name.clone(),
            is_link: false,
            last,
            origins: app.config.portal.embed.origins.join(" "),
        }
    }

    /// The origin of the page around it, of a visit in a frame.
    fn around(&self) -> Option<&str> {
        let origin = self.last.as_ref()?.parent_origin.as_deref()?;
        self.origins.split(' ').find(|known| *known == origin)
    }

    fn return_url(&self) -> Option<&str> {
        self.last.as_ref()?.return_url.as_deref()
    }
}

/// The page that a link leads to. Its script sends the token, which stands in the fragment and in no log.
pub(super) async fn page(State(app): State<Arc<App>>) -> Response {
    let name = app.config.portal.brand.name.clone();
    framed(Page(EnterPage { name }).into_response(), &app)
}

/// Any page that may be framed may show it: which one a link was made for is not known yet.
pub(super) fn framed(mut response: Response, app: &App) -> Response {
    let origins = &app.config.portal.embed.origins;
    if !origins.is_empty() {
        response.extensions_mut().insert(FramedBy(origins.join(" ")));
    }
    response
}

/// Uses a link up and begins its visit. One that is wrong, used or over is answered alike.
pub(super) async fn enter(State(app): State<Arc<App>>, fields: Fields) -> Result<Response, Problem> {
    let shown = fields.get("token").unwrap_or_default();
    let token = visit::new_token("");
    let (link, digest) = (KeyDigest::of(shown), KeyDigest::of(&token));
    let begin = app.store.use_portal_link(&link, &digest, app.now());
    let begin = by(app.deadline(), ("your visit", "begun"), begin);
    let Some(visit) = Box::pin(app.visits.links.look_up(link, "links", begin)).await? else {
        let page = ExpiredPage {
            is_link: true,
            ..ExpiredPage::new(&app, None)
        };
        return Ok(framed((StatusCode::GONE, Page(page)).into_response(), &app));
    };
    let mut response = see_other(&visit.landing);
    visit::show(&mut response, &token, &visit);
    Ok(response)
}

/// What those see whose visit is over, or who have none.
pub(super) async fn expired(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let last = visit::last_of(&app, &headers).await;
    framed(Page(ExpiredPage::new(&app, last)).into_response(), &app)
}

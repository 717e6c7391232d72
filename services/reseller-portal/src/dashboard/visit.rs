//! Visits: found by their cookie, ended by their person.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::key::{KeyDigest, format_token};
use http::{HeaderMap, HeaderValue, header};
use http_api::{Problem, Remembered, Strangers, by};
use pages::{TICK, append_cookie, cookie, see_other};
use store::{Act, EndVisits, PortalVisit};

use crate::app::App;

/// The cookie of a visit in a tab of its own.
const COOKIE: &str = "__Host-pr_app";
/// The cookie of a visit in a frame; the browser keeps it for that frame's page alone.
const FRAMED_COOKIE: &str = "__Host-pr_embed";

/// Visits that were looked up of late.
#[derive(Default)]
pub(crate) struct Visits {
    remembered: Remembered<KeyDigest, Arc<PortalVisit>>,
    /// For the ticks of live pages. They do not renew a visit, so that what they find must not stand for a look-up that does.
    ticking: Remembered<KeyDigest, Arc<PortalVisit>>,
    /// Cookies that show no visit must not cost a query each.
    cookies: Strangers,
    /// The same of visits that are over, which the cookies of those who go on are not.
    past: Strangers,
    /// Tokens of links that open nothing must not either.
    pub(super) links: Strangers,
}

/// 256 random bits as text, with a prefix by which scanners of secrets find what leaked.
pub(crate) fn new_token(prefix: &str) -> String {
    format_token(prefix, &rand::random())
}

/// The digests of the cookies that a browser shows; it may have both, of which one may show a visit that is over.
fn digests_of(headers: &HeaderMap) -> impl Iterator<Item = KeyDigest> {
    let shown = [FRAMED_COOKIE, COOKIE].map(|name| cookie(headers, name).filter(|value| !value.is_empty()));
    let digests = shown.map(|value| value.map(KeyDigest::of));
    digests.into_iter().flatten()
}

/// The visit that a request belongs to; none when it shows none that goes on.
pub(super) async fn find(app: &App, headers: &HeaderMap) -> Result<Option<Arc<PortalVisit>>, Problem> {
    Ok(find_shown(app, headers).await?.map(|(_, visit)| visit))
}

/// The same with what shows it.
async fn find_shown(
    app: &App,
    headers: &HeaderMap,
) -> Result<Option<(KeyDigest, Arc<PortalVisit>)>, Problem> {
    // A stream is opened again by the browser itself.
    let streams = |accepted: &HeaderValue| accepted.as_bytes() == b"text/event-stream";
    let is_tick = headers.contains_key(TICK) || headers.get(header::ACCEPT).is_some_and(streams);
    for digest in digests_of(headers) {
        if let Some(visit) = find_by(app, digest, is_tick).await? {
            return Ok(Some((digest, visit)));
        }
    }
    Ok(None)
}

async fn find_by(app: &App, digest: KeyDigest, is_tick: bool) -> Result<Option<Arc<PortalVisit>>, Problem> {
    let reading = async {
        let found = app.store.find_portal_visit(&digest, app.now(), !is_tick);
        let found = by(app.deadline(), ("your visit", "looked up"), found).await?;
        Ok(found.map(Arc::new))
    };
    let reading = Box::pin(app.visits.cookies.look_up(digest, "visits", reading));
    let remembered = if is_tick {
        &app.visits.ticking
    } else {
        &app.visits.remembered
    };
    let found = remembered.find(&digest, reading).await?;
    // It may have ended while it was remembered.
    Ok(found.filter(|visit| visit.ends_at > app.now()))
}

/// The visit that a browser had last, also when it is over: where it came from is said then.
pub(super) async fn last_of(app: &App, headers: &HeaderMap) -> Option<PortalVisit> {
    for digest in digests_of(headers) {
        let read = app.store.find_past_portal_visit(&digest);
        let read = by(app.deadline(), ("your visit", "looked up"), read);
        let found = app.visits.past.look_up(digest, "visits", read).await.ok()?;
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Gives the browser the cookie that shows its visit, and takes the one from it that may show another.
pub(super) fn show(response: &mut Response, token: &str, visit: &PortalVisit) {
    let own = (COOKIE, "Path=/; Secure; HttpOnly; SameSite=Lax");
    let framed = (
        FRAMED_COOKIE,
        "Path=/; Secure; HttpOnly; SameSite=None; Partitioned",
    );
    let ((name, attributes), (other, others)) = match visit.parent_origin {
        Some(_) => (framed, own),
        None => (own, framed),
    };
    append_cookie(response, &format!("{name}={token}; {attributes}"));
    append_cookie(response, &format!("{other}=; Max-Age=0; {others}"));
}

/// Ends a visit. The cookie stays: it is worth nothing any more, but tells where the visit came from.
pub(super) async fn sign_out(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    if let Some((digest, visit)) = find_shown(&app, &headers).await? {
        let signature = visit.signature();
        let act = Act {
            by: &signature,
            note: None,
            at: app.now(),
        };
        let which = EndVisits::One(visit.id);
        let end = app.store.end_portal_visits(Some(&visit.reseller_id), which, act);
        by(app.deadline(), ("your visit", "ended"), end).await?;
        app.visits.remembered.forget(&digest).await;
        app.visits.ticking.forget(&digest).await;
    }
    Ok(see_other("/app/expired"))
}

//! What every request for a page passes: where it comes from, whose visit it is, and how a problem looks to a person.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, header};
use http_api::{Problem, ProblemKind};
use pages::{
    Details, FLASH, Page, address_of, append_cookie, cookie, details_of, is_of_this_origin, is_safe,
    see_other, tagged, with_headers, without_empty,
};

use super::enter::framed;
use super::frame::Frame;
use super::{HOME, visit};
use crate::app::App;
use crate::problems::AUTHENTICATION_TOO_OLD;
use crate::request::Visiting;

/// Where browsers report what the policy kept a page from.
pub(super) const VIOLATIONS: &str = "/app/policy-violations";

/// Counts what browsers report.
pub(super) async fn take_violations(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<StatusCode, Problem> {
    app.violations.take(request, &*app).await
}

/// Which pages may frame an answer, with blanks between them.
#[derive(Clone)]
pub(super) struct FramedBy(pub(super) String);

/// Refuses what another site sends, and says what a browser may do with the answer.
pub(super) async fn protect(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let public_url = app.config.portal.public_url.as_deref();
    // Reports are sent by the browser itself, which does not always say from where; nothing comes of them but a number.
    let may = is_safe(request.method())
        || request.uri().path() == VIOLATIONS
        || is_of_this_origin(request.headers(), public_url);
    let is_get = request.method() == Method::GET;
    let mut response = if may {
        let response = next.run(request).await;
        page_of(response, None, &app, is_get).await
    } else {
        let detail = "the request comes from another site: open the dashboard itself and try again";
        let problem = Problem::new(ProblemKind::FORBIDDEN, detail).into_response();
        page_of(problem, None, &app, false).await
    };
    let framed_by = response.extensions_mut().remove::<FramedBy>();
    with_headers(
        &mut response,
        framed_by.as_ref().map(|FramedBy(origins)| origins.as_str()),
        Some(VIOLATIONS),
    );
    response
}

/// Lets those pass who have a visit, and tells the others how to get one. What goes wrong becomes a page.
pub(super) async fn visited(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let address = address_of(&request, HOME);
    // The body of a request cannot be shared between threads, and so cannot the request while something is waited for.
    let (headers, method) = (request.headers().clone(), request.method().clone());
    let visit = match visit::find(&app, &headers).await {
        Ok(Some(visit)) => visit,
        Ok(None) => return see_other("/app/expired"),
        Err(problem) => return problem.into_response(),
    };
    if method == Method::GET
        && let Some(shorter) = without_empty(&address)
    {
        return see_other(&shorter);
    }
    let parent = visit.parent_origin.clone();
    let parent = parent.filter(|origin| app.config.portal.embed.origins.contains(origin));
    let frame = Frame::new(&app, Arc::clone(&visit), &headers, address);
    let has_flash = cookie(&headers, FLASH).is_some();
    request.extensions_mut().insert(Visiting(visit));
    request.extensions_mut().insert(frame.clone());
    let response = next.run(request).await;
    let page = page_of(response, Some(frame), &app, method == Method::GET).await;
    let public_url = app.config.portal.public_url.as_deref();
    let mut response = tagged(page, (&method, &headers), public_url).await;
    if has_flash && !response.headers().contains_key(header::SET_COOKIE) {
        let forgotten = format!("{FLASH}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax");
        append_cookie(&mut response, &forgotten);
    }
    if let Some(parent) = parent {
        keep_in_frame(&mut response);
        response.extensions_mut().insert(FramedBy(parent));
    }
    response
}

/// The cookies of a frame: a browser keeps none of another kind in the pages of another site.
fn keep_in_frame(response: &mut Response) {
    let cookies = response.headers().get_all(header::SET_COOKIE).iter();
    let cookies: Vec<_> = cookies
        .filter_map(|cookie| {
            Some(
                cookie
                    .to_str()
                    .ok()?
                    .replace("SameSite=Lax", "SameSite=None; Partitioned"),
            )
        })
        .collect();
    response.headers_mut().remove(header::SET_COOKIE);
    for cookie in cookies {
        append_cookie(response, &cookie);
    }
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    frame: Frame,
    status: u16,
    details: Details,
    /// In how many seconds the same may succeed.
    retry_after: Option<u32>,
    /// Whether the page may ask for itself again then.
    is_get: bool,
    /// Whether the person has to sign in again where the link came from.
    is_stale: bool,
}

#[derive(Template)]
#[template(path = "problem_alone.html")]
struct ProblemAlone {
    name: String,
    status: u16,
    details: Details,
    /// In how many seconds the page asks for itself again, if it does.
    again: Option<u32>,
}

/// A problem becomes a page; everything else stays as it is. Only a page that was asked for with `GET` may ask for itself again: a form would be
/// sent a second time.
async fn page_of(response: Response, frame: Option<Frame>, app: &App, is_get: bool) -> Response {
    let (head, details) = match details_of(response).await {
        Ok(found) => found,
        Err(other) => return other,
    };
    let status = head.status.as_u16();
    let retry_after = head.headers.get(header::RETRY_AFTER);
    let seconds = |value: &HeaderValue| value.to_str().ok()?.parse::<u32>().ok();
    // Of too many requests, pages that ask by themselves would be more.
    let is_away = head.status == StatusCode::SERVICE_UNAVAILABLE;
    let again = retry_after.and_then(seconds).filter(|_| is_get && is_away);
    let is_alone = frame.is_none();
    let mut page = match frame {
        Some(frame) => Page(ProblemPage {
            is_stale: details.kind == AUTHENTICATION_TOO_OLD.uri(),
            frame,
            status,
            details,
            retry_after: retry_after.and_then(seconds),
            is_get,
        })
        .into_response(),
        // Whose visit it is, is not known yet, so that it may be one in a frame.
        None => {
            let page = Page(ProblemAlone {
                name: app.config.portal.brand.name.clone(),
                status,
                details,
                again,
            });
            framed(page.into_response(), app)
        }
    };
    *page.status_mut() = head.status;
    if let Some(retry_after) = retry_after {
        page.headers_mut()
            .insert(header::RETRY_AFTER, retry_after.clone());
    }
    // It has no script that could do it.
    if let Some(seconds) = again.filter(|_| is_alone) {
        page.headers_mut()
            .insert(header::REFRESH, HeaderValue::from(seconds));
    }
    page
}

//! What every request for a page passes: where it comes from, whose visit it is, and how a problem looks to a person.

use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode, header};
use http_api::{Caller, Problem, ProblemKind, TakesBodies as _, read_body};
use pages::{
    Details, Preferences, address_of, details_of, is_of_this_origin, is_safe, tagged, takes_pages,
    with_headers, without_empty,
};
use url::form_urlencoded;

use super::frame::{FLASH, Frame, Page, append_cookie, cookie, see_other};
use super::{provider, visit};
use crate::app::App;
use crate::request::AUTHENTICATION_TOO_OLD;
use crate::status;

/// Where browsers report what the policy kept a page from.
pub(super) const VIOLATIONS: &str = "/console/policy-violations";

/// Counts what browsers report.
pub(super) async fn take_violations(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<StatusCode, Problem> {
    app.sign_ins.violations.take(request, &*app).await
}

/// Refuses what another site sends, and says what a browser may do with the answer.
pub(super) async fn protect(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let public_url = app.config.operator.public_url.as_deref();
    // Reports are sent by the browser itself, which does not always say from where; nothing comes of them but a number.
    let may = is_safe(request.method())
        || request.uri().path() == VIOLATIONS
        || is_of_this_origin(request.headers(), public_url);
    let is_read = takes_pages(request.headers());
    let theme = Preferences::of(request.headers()).theme;
    let mut response = if may {
        let response = next.run(request).await;
        // What passes without a visit has its problems for programs still.
        if is_read {
            page_of(response, (None, theme), None).await
        } else {
            response
        }
    } else {
        let detail = "the request comes from another site: open the console itself and try again";
        page_of(
            Problem::new(ProblemKind::FORBIDDEN, detail).into_response(),
            (None, theme),
            None,
        )
        .await
    };
    with_headers(&mut response, None, Some(VIOLATIONS));
    response
}

/// Lets those pass who have a visit, and sends the others to sign in. What goes wrong becomes a page.
pub(super) async fn visited(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let address = address_of(&request, super::HOME);
    if *request.method() == Method::GET
        && let Some(shorter) = without_empty(&address)
    {
        return see_other(&shorter);
    }
    // The body of a request cannot be shared between threads, and so cannot the request while something is waited for.
    let (headers, method, uri) = (
        request.headers().clone(),
        request.method().clone(),
        request.uri().clone(),
    );
    let asked = (method == Method::GET).then(|| address.clone());
    let theme = Preferences::of(&headers).theme;
    let caller = match visit::find(&app, &headers, (&method, uri.path()), app.deadline()).await {
        Ok(Some(caller)) => caller,
        Ok(None) => return visit::ask_to_sign_in(&method, &address),
        Err(problem) => return page_of(problem.into_response(), (None, theme), asked.as_deref()).await,
    };
    let frame = Frame::new(&app, &caller, &headers, address);
    let (mut request, sent) = match with_form(&app, request, &caller).await {
        Ok(found) => found,
        Err(problem) => return page_of(problem.into_response(), (Some(frame), theme), None).await,
    };
    let has_flash = cookie(&headers, FLASH).is_some();
    request.extensions_mut().insert(caller);
    request.extensions_mut().insert(frame.clone());
    let mut response = if frame.is_tick {
        status::following(next.run(request)).await
    } else {
        next.run(request).await
    };
    if let Some(sent) = sent {
        response.extensions_mut().insert(sent);
    }
    let page = page_of(response, (Some(frame), theme), asked.as_deref()).await;
    let public_url = app.config.operator.public_url.as_deref();
    let mut response = tagged(page, (&method, &headers), public_url).await;
    if has_flash && !response.headers().contains_key(header::SET_COOKIE) {
        let forgotten = format!("{FLASH}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax");
        append_cookie(&mut response, &forgotten);
    }
    response
}

/// A form as it was sent, and where to.
#[derive(Clone)]
struct Sent {
    action: String,
    fields: Vec<(String, String)>,
}

/// The request, with its form where the person may have to show once more who it is before what they ask for is done. It is read here, since
/// some are refused before a handler has it.
async fn with_form(app: &App, request: Request, caller: &Caller) -> Result<(Request, Option<Sent>), Problem> {
    if *request.method() != Method::POST || !provider::is_stale(&caller.identity, app.now()) {
        return Ok((request, None));
    }
    let action = address_of(&request, super::HOME);
    let (head, body) = request.into_parts();
    let body = read_body(&head.headers, body, app.max_body_bytes(), app.deadline()).await?;
    let fields = form_urlencoded::parse(&body).into_owned();
    let fields = fields.filter(|(_, value)| !value.is_empty()).collect();
    let request = Request::from_parts(head, Body::from(body));
    Ok((request, Some(Sent { action, fields })))
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
}

/// Where the form of a refused act stands, when that is not the address that it is sent to: the person comes back there.
#[derive(Clone)]
pub(super) struct FormAt(pub(super) String);

#[derive(Template)]
#[template(path = "step_up.html")]
struct StepUp {
    frame: Frame,
    details: Details,
    /// Where the provider asks the person.
    again: String,
    /// The form that this page keeps meanwhile.
    kept: Option<Sent>,
}

#[derive(Template)]
#[template(path = "problem_alone.html")]
struct ProblemAlone {
    theme: &'static str,
    status: u16,
    details: Details,
    /// In how many seconds the same may succeed.
    retry_after: Option<u32>,
    /// The page that was asked for, where its address leads to it once more.
    again: Option<String>,
}

/// A problem becomes a page; everything else stays as it is. Only a page that was `asked` for with `GET` may ask for itself again: a form would
/// be sent a second time.
async fn page_of(
    response: Response,
    (frame, theme): (Option<Frame>, &'static str),
    asked: Option<&str>,
) -> Response {
    let (mut head, details) = match details_of(response).await {
        Ok(found) => found,
        Err(other) => return other,
    };
    let status = head.status.as_u16();
    let retry_after = head.headers.get(header::RETRY_AFTER);
    let seconds = retry_after.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
    let mut page = match frame {
        Some(mut frame) if details.kind == AUTHENTICATION_TOO_OLD.uri() => {
            let kept = head.extensions.remove::<Sent>();
            if let Some(FormAt(address)) = head.extensions.remove::<FormAt>() {
                frame.address = address;
            }
            Page(StepUp {
                again: provider::again_at(&frame.address),
                frame,
                details,
                kept,
            })
            .into_response()
        }
        Some(frame) => Page(ProblemPage {
            frame,
            status,
            details,
            is_get: asked.is_some(),
            retry_after: seconds,
        })
        .into_response(),
        None => Page(ProblemAlone {
            theme,
            status,
            details,
            retry_after: seconds,
            again: asked.map(str::to_owned),
        })
        .into_response(),
    };
    *page.status_mut() = head.status;
    if let Some(retry_after) = retry_after {
        page.headers_mut()
            .insert(header::RETRY_AFTER, retry_after.clone());
    }
    page
}

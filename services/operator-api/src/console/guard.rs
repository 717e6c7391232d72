//! What every request for a page passes: where it comes from, whose visit it is, and how a problem looks to a person.

use std::sync::Arc;

use askama::Template;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_api::{PROBLEM_JSON, Problem, ProblemKind, TakesBodies as _};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use url::{Url, form_urlencoded};

use super::frame::{FLASH, Frame, Page, append_cookie, cookie, see_other};
use super::{provider, visit};
use crate::app::App;
use crate::request::AUTHENTICATION_TOO_OLD;

/// Nothing but what this service serves itself, and nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, HeaderValue); 4] = [
    // With no referrer at all, browsers say "null" as the origin of a form, and it could not be told from that of another site.
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static("clipboard-write=(self), camera=(), geolocation=(), microphone=()"),
    ),
];

/// Largest page that gets a tag by which a browser knows that it has it.
const TAGGED_MAX_BYTES: usize = 4 * 1024 * 1024;

/// Refuses what another site sends, and says what a browser may do with the answer.
pub(super) async fn protect(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let public_url = app.config.operator.public_url.as_deref();
    let mut response = if is_safe(request.method()) || is_of_this_origin(request.headers(), public_url) {
        next.run(request).await
    } else {
        let detail = "the request comes from another site: open the console itself and try again";
        page_of(
            Problem::new(ProblemKind::FORBIDDEN, detail).into_response(),
            None,
            false,
        )
        .await
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    response
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Browsers of today say where a request comes from; of one that does not, the origin has to be that of the public address, and without one
/// the host that was asked.
fn is_of_this_origin(headers: &HeaderMap, public_url: Option<&str>) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(HeaderName::from_static("sec-fetch-site")) {
        return site == "same-origin";
    }
    let origin = text(header::ORIGIN).and_then(|origin| Url::parse(origin).ok());
    if let Some(public) = public_url.and_then(|url| Url::parse(url).ok()) {
        return origin.is_some_and(|origin| origin.origin() == public.origin());
    }
    let host = text(header::HOST).and_then(|host| Url::parse(&format!("http://{host}")).ok());
    let authority = |url: &Url| (url.host_str().map(str::to_owned), url.port());
    origin.zip(host).is_some_and(|(origin, host)| {
        // The scheme of the host is not known behind a proxy that ends TLS; its default port is not written.
        authority(&origin) == authority(&host)
    })
}

/// Lets those pass who have a visit, and sends the others to sign in. What goes wrong becomes a page.
pub(super) async fn visited(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let address = address_of(&request);
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
    let caller = match visit::find(&app, &headers, (&method, uri.path()), app.deadline()).await {
        Ok(Some(caller)) => caller,
        Ok(None) => return visit::ask_to_sign_in(&method, &address),
        Err(problem) => return page_of(problem.into_response(), None, false).await,
    };
    let frame = Frame::new(&caller, &headers, address, app.now());
    let has_flash = cookie(&headers, FLASH).is_some();
    let known = headers.get(header::IF_NONE_MATCH);
    request.extensions_mut().insert(caller);
    request.extensions_mut().insert(frame.clone());
    let response = next.run(request).await;
    let mut response = tagged(page_of(response, Some(frame), method == Method::GET).await, known).await;
    if has_flash && !response.headers().contains_key(header::SET_COOKIE) {
        let forgotten = format!("{FLASH}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax");
        append_cookie(&mut response, &forgotten);
    }
    response
}

fn address_of(request: &Request) -> String {
    let address = request.uri().path_and_query().map(ToString::to_string);
    address.unwrap_or_else(|| super::HOME.to_owned())
}

/// A form sends its empty fields too; the address of what it shows is the one without them.
fn without_empty(address: &str) -> Option<String> {
    let (path, query) = address.split_once('?')?;
    let pairs = || form_urlencoded::parse(query.as_bytes());
    if !pairs().any(|(_, value)| value.is_empty()) {
        return None;
    }
    let kept = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs().filter(|(_, value)| !value.is_empty()))
        .finish();
    Some(if kept.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{kept}")
    })
}

/// Gives a page a tag of its content, and answers a browser that has it already with nothing.
async fn tagged(response: Response, known: Option<&HeaderValue>) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html")) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Ok(body) = to_bytes(body, TAGGED_MAX_BYTES).await else {
        return Problem::new(ProblemKind::INTERNAL, "the page is too long").into_response();
    };
    if head.status != StatusCode::OK {
        return Response::from_parts(head, Body::from(body));
    }
    let digest: [u8; 32] = Sha256::digest(&body).into();
    let tag: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let Ok(tag) = HeaderValue::from_str(&format!("\"{tag}\"")) else {
        return Response::from_parts(head, Body::from(body));
    };
    let is_known = known == Some(&tag);
    head.headers.insert(header::ETAG, tag);
    if is_known {
        head.status = StatusCode::NOT_MODIFIED;
        head.headers.remove(header::CONTENT_TYPE);
        return Response::from_parts(head, Body::empty());
    }
    Response::from_parts(head, Body::from(body))
}

/// Problem details, as a page reads them.
#[derive(Debug, Deserialize)]
struct Details {
    #[serde(rename = "type")]
    kind: String,
    title: String,
    detail: String,
    #[serde(default)]
    errors: Vec<FieldDetails>,
}

#[derive(Debug, Deserialize)]
struct FieldDetails {
    field: String,
    detail: String,
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

/// Where the form of a refused act stands, when that is not the address that it is sent to.
#[derive(Clone)]
pub(super) struct FormAt(pub(super) String);

#[derive(Template)]
#[template(path = "step_up.html")]
struct StepUp {
    frame: Frame,
    details: Details,
    /// Where the provider asks the person.
    again: String,
}

#[derive(Template)]
#[template(path = "problem_alone.html")]
struct ProblemAlone {
    status: u16,
    details: Details,
}

/// A problem becomes a page; everything else stays as it is. Only a page that was asked for with `GET` may ask for itself again: a form would be
/// sent a second time.
async fn page_of(response: Response, frame: Option<Frame>, is_get: bool) -> Response {
    let is_problem = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind == PROBLEM_JSON);
    if !is_problem {
        return response;
    }
    let (head, body) = response.into_parts();
    let body = to_bytes(body, TAGGED_MAX_BYTES).await.unwrap_or_default();
    let Ok(details) = serde_json::from_slice::<Details>(&body) else {
        return Response::from_parts(head, Body::from(body));
    };
    let status = head.status.as_u16();
    let retry_after = head.headers.get(header::RETRY_AFTER);
    let mut page = match frame {
        Some(mut frame) if details.kind == AUTHENTICATION_TOO_OLD.uri() => {
            if let Some(FormAt(address)) = head.extensions.get() {
                frame.address.clone_from(address);
            }
            Page(StepUp {
                again: provider::again_at(&frame.address),
                frame,
                details,
            })
            .into_response()
        }
        Some(frame) => Page(ProblemPage {
            frame,
            status,
            details,
            is_get,
            retry_after: retry_after.and_then(|seconds| seconds.to_str().ok()?.parse().ok()),
        })
        .into_response(),
        None => Page(ProblemAlone { status, details }).into_response(),
    };
    *page.status_mut() = head.status;
    if let Some(retry_after) = retry_after {
        page.headers_mut()
            .insert(header::RETRY_AFTER, retry_after.clone());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        pairs.collect()
    }

    #[test]
    fn only_the_console_itself_may_act() {
        let may = |pairs: &[(&'static str, &'static str)]| is_of_this_origin(&headers(pairs), None);
        assert!(may(&[("sec-fetch-site", "same-origin")]));
        for site in ["same-site", "cross-site", "none"] {
            assert!(!may(&[
                ("sec-fetch-site", site),
                ("origin", "https://here.example"),
                ("host", "here.example")
            ]));
        }
        assert!(may(&[
            ("origin", "https://here.example"),
            ("host", "here.example")
        ]));
        assert!(may(&[
            ("origin", "http://localhost:8082"),
            ("host", "localhost:8082")
        ]));
        assert!(!may(&[
            ("origin", "https://there.example"),
            ("host", "here.example")
        ]));
        assert!(!may(&[
            ("origin", "http://here.example:81"),
            ("host", "here.example")
        ]));
        assert!(!may(&[("origin", "null"), ("host", "here.example")]));
        assert!(!may(&[("host", "here.example")]));
        let public = Some("https://here.example");
        for (origin, may) in [
            ("https://here.example", true),
            ("http://here.example", false),
            ("https://inside.example", false),
            ("null", false),
        ] {
            let headers = headers(&[("origin", origin), ("host", "inside.example")]);
            assert_eq!(is_of_this_origin(&headers, public), may, "{origin}");
        }
    }

    #[test]
    fn an_address_is_without_what_a_form_left_empty() {
        assert_eq!(
            without_empty("/console/audit?actor=&action=key"),
            Some("/console/audit?action=key".to_owned())
        );
        assert_eq!(
            without_empty("/console/audit?actor="),
            Some("/console/audit".to_owned())
        );
        assert_eq!(without_empty("/console/audit?actor=a"), None);
        assert_eq!(without_empty("/console/audit"), None);
    }
}

//! What every request for a page passes: where it comes from, what a browser may do with the answer, and how it knows a page that it has.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, response};
use http_api::{PROBLEM_JSON, Problem, ProblemKind};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use url::{Url, form_urlencoded};

use crate::compression;

/// Nothing but what the service serves itself, and nothing inline; text becomes HTML or a script by the one way of `pages.js` and by no other.
/// Who may frame it follows.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; require-trusted-types-for 'script'; \
                      trusted-types postrider; frame-ancestors";

const HEADERS: [(HeaderName, HeaderValue); 3] = [
    // With no referrer at all, browsers say "null" as the origin of a form, and it could not be told from that of another site.
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
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

/// Says what a browser may do with an answer, and which pages may frame it: these origins, or none.
///
/// Where `reports` is the path of a service that counts them, browsers report there what the policy kept a page from.
pub fn with_headers(response: &mut Response, framed_by: Option<&str>, reports: Option<&str>) {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, value);
    }
    // With `report-to` beside it, Chromium would not heed `report-uri`, and send reports over https alone and up to a minute late.
    let reported = reports.map(|path| format!("; report-uri {path}"));
    let reported = reported.unwrap_or_default();
    let policy = |who: &str| HeaderValue::from_str(&format!("{POLICY} {who}{reported}")).ok();
    let policy = policy(framed_by.unwrap_or("'none'")).or_else(|| policy("'none'"));
    if let Some(policy) = policy {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
}

/// Whether a request of this method changes nothing.
pub fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Whether a link of ours was followed, or a person has written the address: no other site has sent the browser here. Of a browser that
/// does not say so, the page that it comes from has to be ours.
pub fn is_followed_here(headers: &HeaderMap, public_url: Option<&str>) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    match text(HeaderName::from_static("sec-fetch-site")) {
        Some(site) => matches!(site, "same-origin" | "none"),
        None => text(header::REFERER).is_some_and(|from| is_ours(from, headers, public_url)),
    }
}

/// Whether the answer is for a person who reads it in a browser.
pub fn takes_pages(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).into_iter();
    accepted.any(|line| line.to_str().is_ok_and(|line| line.contains("text/html")))
}

/// Browsers of today say where a request comes from; of one that does not, the origin has to be that of the public address, and without one
/// the host that was asked.
pub fn is_of_this_origin(headers: &HeaderMap, public_url: Option<&str>) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(HeaderName::from_static("sec-fetch-site")) {
        return site == "same-origin";
    }
    text(header::ORIGIN).is_some_and(|origin| is_ours(origin, headers, public_url))
}

fn is_ours(address: &str, headers: &HeaderMap, public_url: Option<&str>) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let origin = Url::parse(address).ok();
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

/// Path and query of a request; `home` without any.
pub fn address_of(request: &Request, home: &str) -> String {
    let address = request.uri().path_and_query().map(ToString::to_string);
    address.unwrap_or_else(|| home.to_owned())
}

/// A form sends its empty fields too; the address of what it shows is the one without them.
pub fn without_empty(address: &str) -> Option<String> {
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

/// Gives a page a tag of its content, answers a browser that has it already with nothing, and compresses it for one that takes it so, where that
/// tells no other site what stands in it. `method` and `headers` are those of the request.
pub async fn tagged(
    response: Response,
    (method, headers): (&Method, &HeaderMap),
    public_url: Option<&str>,
) -> Response {
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
    // A weak one: the page is the same however it is compressed, and a proxy that compresses takes no strong one through.
    let Ok(tag) = HeaderValue::from_str(&format!("W/\"{tag}\"")) else {
        return Response::from_parts(head, Body::from(body));
    };
    let is_known = headers.get(header::IF_NONE_MATCH) == Some(&tag);
    head.headers.insert(header::ETAG, tag);
    if is_known {
        head.status = StatusCode::NOT_MODIFIED;
        head.headers.remove(header::CONTENT_TYPE);
        return Response::from_parts(head, Body::empty());
    }
    let body = if compression::may_compress(method, headers, public_url) {
        compression::page(&mut head.headers, body)
    } else {
        Body::from(body)
    };
    Response::from_parts(head, body)
}

/// Problem details, as a page reads them.
#[derive(Debug, Deserialize)]
pub struct Details {
    /// The URI of its kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// What happened.
    pub title: String,
    /// The same of this request.
    pub detail: String,
    /// What is wrong with each field.
    #[serde(default)]
    pub errors: Vec<FieldDetails>,
    /// What a person quotes to those who look after the installation: the log has a line with it, and the trace has it as its id.
    #[serde(skip)]
    pub reference: String,
}

/// What is wrong with a field.
#[derive(Debug, Deserialize)]
pub struct FieldDetails {
    /// Its name.
    pub field: String,
    /// What is wrong.
    pub detail: String,
}

/// The trace of this request, or where none is recorded a number of its own.
fn reference() -> String {
    let trace = telemetry::traceparent::current();
    let trace = trace.as_deref().and_then(|it| it.split('-').nth(1));
    trace.map_or_else(|| format!("{:016x}", rand::random::<u64>()), str::to_owned)
}

/// The problem that an answer has, with the rest of the answer; one without any comes back as it is. The log gets the reference under which
/// the page shows it.
///
/// # Errors
///
/// The answer itself, when it is none with problem details.
pub async fn details_of(response: Response) -> Result<(response::Parts, Details), Response> {
    let is_problem = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind == PROBLEM_JSON);
    if !is_problem {
        return Err(response);
    }
    let (head, body) = response.into_parts();
    let body = to_bytes(body, TAGGED_MAX_BYTES).await.unwrap_or_default();
    match serde_json::from_slice::<Details>(&body) {
        Ok(mut details) => {
            details.reference = reference();
            let (reference, kind) = (&details.reference, &details.kind);
            let status = head.status.as_u16();
            tracing::info!(
                reference,
                kind,
                status,
                "answered with a page that says what is wrong"
            );
            Ok((head, details))
        }
        Err(_) => Err(Response::from_parts(head, Body::from(body))),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The headers of a request.
    pub(crate) fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
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
    fn a_sign_in_is_begun_from_here_alone() {
        let may = |pairs: &[(&'static str, &'static str)]| {
            is_followed_here(&headers(pairs), Some("https://here.example"))
        };
        for site in ["same-origin", "none"] {
            assert!(may(&[("sec-fetch-site", site)]), "{site}");
        }
        for site in ["cross-site", "same-site", ""] {
            let referer = ("referer", "https://here.example/console");
            assert!(!may(&[("sec-fetch-site", site), referer]), "{site}");
        }
        assert!(may(&[("referer", "https://here.example/console/sign-in")]));
        assert!(!may(&[("referer", "https://there.example/console/sign-in")]));
        assert!(!may(&[]));
    }

    #[test]
    fn the_one_way_from_text_to_html_is_the_one_that_the_script_makes() {
        let mut response = Response::new(Body::empty());
        with_headers(&mut response, None, None);
        let policy = &response.headers()[header::CONTENT_SECURITY_POLICY];
        let policy = policy.to_str().unwrap();
        let parts: Vec<&str> = policy.split("; ").collect();
        assert!(parts.contains(&"require-trusted-types-for 'script'"), "{policy}");
        assert!(parts.contains(&"trusted-types postrider"), "{policy}");
        let script = include_str!("../assets/pages.js");
        assert_eq!(script.matches(r#"createPolicy("postrider""#).count(), 1);
    }

    #[test]
    fn a_browser_is_told_from_a_program_by_what_it_accepts() {
        for (accepted, is_browser) in [
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                true,
            ),
            ("application/json", false),
            ("*/*", false),
        ] {
            assert_eq!(
                takes_pages(&headers(&[("accept", accepted)])),
                is_browser,
                "{accepted}"
            );
        }
        assert!(!takes_pages(&HeaderMap::new()));
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
